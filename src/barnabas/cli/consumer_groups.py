"""`barnabas consumer-groups`: list, describe, reset and delete groups, as kafka-consumer-groups.sh does.

Flags, output and exit codes are those of Kafka's tool: an error from a broker goes to stdout, and the exit
code is 0. With --json it goes to stderr, and the exit code is 1. Groups, topics and partitions are sorted;
Kafka prints some of them in hash map order. --lag-seconds is our extension.
"""

from typing import Final

from barnabas.cli import option_parser
from barnabas.cli.option_parser import Options, long
from barnabas.cli.tool import (
    add_client_options,
    admin_settings,
    note,
    print_json,
    reason,
    regex_error,
    run_async,
    started,
)

Parser = option_parser.Parser

_FAILED: Final = "Executing consumer group command failed due to "
_TIMEOUT_MS: Final = 30_000
_ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_SCENARIOS: Final = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
# Options that need one of these actions, as declared in the parser of Kafka's tool.
_AVAILABLE: Final = {
    "members": ("describe",),
    "verbose": ("describe",),
    "offsets": ("describe",),
    "lag-seconds": ("describe",),
    "state": ("describe", "list"),
    "type": ("list",),
}
_NO_ACTION_WARNING: Final = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will"
    " require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly"
    " if you are scripting this command and want to keep the current default behavior without prompting."
)


def arguments(parser: option_parser.Parser) -> None:
    parser.about = "list, describe and delete consumer groups, and reset their offsets"
    add_client_options(parser, required=False)
    parser.flag("list", "list group names")
    parser.flag("describe", "describe the offsets, members or state of groups")
    parser.flag("delete", "delete groups without members, and their offsets")
    parser.flag("reset-offsets", "reset the offsets of groups without members")
    parser.flag("delete-offsets", "delete a group's offsets of topics that it is not subscribed to")
    parser.option(
        "validate-regex",
        "check whether brokers accept this regular expression (RE2) of topics",
        value="regex",
    )
    parser.option("group", "group id; repeatable", value="group", many=True)
    parser.flag("all-groups", "all consumer groups")
    parser.option(
        "timeout",
        f"timeout of each call to the cluster, in ms (default: {_TIMEOUT_MS})",
        value="ms",
        convert=long,
        default=_TIMEOUT_MS,
    )
    _describe_arguments(parser)
    _reset_arguments(parser)


def _describe_arguments(parser: option_parser.Parser) -> None:
    parser.flag("offsets", "with --describe: committed offset and lag of every partition (the default)")
    parser.flag("members", "with --describe: members of groups")
    parser.option(
        "state",
        "with --describe: state of groups; with --list: print states, and only list groups in these states",
        value="states",
        value_optional=True,
    )
    parser.option(
        "type",
        "with --list: print types, and only list groups of these types: classic, consumer",
        value="types",
        value_optional=True,
    )
    parser.flag("verbose", "with --describe: print more columns")
    parser.flag(
        "lag-seconds",
        "with --describe: add a column with the age of the first unread record",
    )


def _reset_arguments(parser: option_parser.Parser) -> None:
    parser.option(
        "topic",
        "with --reset-offsets and --delete-offsets: topic, or some of its partitions: orders:0,2; repeatable",
        value="topic",
        many=True,
    )
    parser.flag("all-topics", "with --reset-offsets: all topics with committed offsets of the group")
    parser.flag("dry-run", "with --reset-offsets: print the new offsets without setting them (the default)")
    parser.flag("execute", "with --reset-offsets: set the new offsets")
    parser.flag("export", "with --reset-offsets: print the new offsets as CSV for --from-file")
    parser.option("to-offset", "reset to this offset", value="offset", convert=long)
    parser.option("from-file", "reset to the offsets in this CSV file", value="file")
    parser.option(
        "to-datetime",
        "reset to the first record at or after this time: YYYY-MM-DDThh:mm:ss.sss, UTC unless a zone follows",
        value="datetime",
    )
    parser.option(
        "by-duration", "reset to the first record younger than this duration: PnDTnHnMnS", value="duration"
    )
    parser.flag("to-earliest", "reset to the log start offset")
    parser.flag("to-latest", "reset to the log end offset")
    parser.flag("to-current", "reset to the committed offset; without one, to the log end offset")
    parser.option("shift-by", "shift by this number of records; negative: back", value="number", convert=long)


def run(options: Options) -> int:
    action = _check(options)
    if action == "validate-regex":
        return _validate(options)
    return run_async(_main(options, action))


def _validate(options: Options) -> int:
    fault, text = regex_error(options.validate_regex), options.validate_regex
    if options.json:
        print_json({"regex": text, "valid": fault is None, "error": fault})
    elif fault is None:
        print(f"The regular expression `{text}` is valid.")
    else:
        print(f"The regular expression `{text}` is invalid: {fault}.")
    return 0


# Checks of options


def _check(options: Options) -> str:
    """Return the action, or end the program if options conflict. The checks are in Kafka's order."""
    parser = options.parser
    for name, actions in _AVAILABLE.items():
        if options.given(name) and not any(options.given(action) for action in actions):
            parser.fail(f"Option(s) [{name}] are unavailable given other options on the command line")
    if not options.given("validate-regex"):
        parser.require(options, "bootstrap-server")
    if options.describe:
        _check_describe(options)
    if options.delete:
        _check_groups(options, "delete")
        if options.topic:
            parser.fail(
                "The consumer does not support topic-specific offset deletion from a consumer group.",
                usage=True,
            )
    if options.delete_offsets and not (options.group and options.topic):
        parser.fail("Option [delete-offsets] takes the following options: [group], [topic]", usage=True)
    if options.reset_offsets:
        _check_reset(options)
    parser.refuse_with(options, "group", ["all-groups", "list"])
    parser.refuse_with(options, "topic", ["list", "describe"])
    asked = [action for action in _ACTIONS if options.given(action)]
    if len(asked) != 1:
        names = ", ".join(f"--{action}" for action in _ACTIONS)
        parser.fail(f"Command must include exactly one action: {names}", usage=True)
    return asked[0]


def _check_groups(options: Options, action: str) -> None:
    if not options.group and not options.all_groups:
        options.parser.fail(
            f"Option [{action}] takes one of these options: [group], [all-groups]", usage=True
        )


def _check_describe(options: Options) -> None:
    parser = options.parser
    _check_groups(options, "describe")
    if sum(options.given(name) for name in ("members", "offsets", "state")) > 1:
        parser.fail(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]", usage=True
        )
    if options.state:
        parser.fail("Option [describe] does not take a value for [state]", usage=True)
    parser.refuse_with(options, "lag-seconds", ["members", "state"])


def _check_reset(options: Options) -> None:
    parser = options.parser
    if options.dry_run and options.execute:
        parser.fail("Option [reset-offsets] only accepts one of [execute] and [dry-run]", usage=True)
    if not options.dry_run and not options.execute:
        note(_NO_ACTION_WARNING)
    _check_groups(options, "reset-offsets")
    for name in _SCENARIOS:
        parser.refuse_with(options, name, [other for other in _SCENARIOS if other != name])
    if not options.all_topics and not options.topic and not options.given("from-file"):
        parser.fail("One of the reset scopes should be defined: --all-topics, --topic.", usage=True)
    if not any(options.given(name) for name in _SCENARIOS):
        names = ", ".join(f"[{name}]" for name in _SCENARIOS)
        parser.fail(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]", usage=True
        )


# Actions


async def _main(options: Options, action: str) -> int:
    from barnabas.base.errors import BarnabasError
    from barnabas.cli.group import actions, deleting
    from barnabas.cli.group.failures import CommandFailed, Misused
    from barnabas.client.admin.admin import Admin

    do = {
        "list": actions.list_groups,
        "describe": actions.describe,
        "delete": deleting.delete,
        "reset-offsets": actions.reset_offsets,
        "delete-offsets": deleting.delete_offsets,
    }[action]
    try:
        async with started(Admin(admin_settings(options))) as admin:
            return await do(admin, options)
    except Misused as error:
        options.parser.fail(str(error), usage=True)
    except CommandFailed as error:
        return _failed(options, str(error), code=0)
    except BarnabasError as error:
        # No broker responded. Kafka's tool exits with 0 here, which a script cannot tell from success.
        return _failed(options, reason(error), code=1)


def _failed(options: Options, why: str, *, code: int) -> int:
    if options.json:
        note(f"Error: {_FAILED}{why}")
        return 1
    print(f"\nError: {_FAILED}{why}")
    return code
