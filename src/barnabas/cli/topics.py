"""`barnabas topics`: create, list, describe, alter and delete topics, as kafka-topics.sh does.

Flags, output and exit codes are those of Kafka's tool. An error is one line on stdout, as in Kafka's tool;
with --json it goes to stderr. Topics are sorted by name; Kafka describes them in hash map order. An unknown
setting is rejected by the broker instead of the tool, with the same line.
"""

import sys
from typing import Final, NoReturn

from barnabas.cli import option_parser
from barnabas.cli.option_parser import Options, integer
from barnabas.cli.tool import add_client_options, admin_settings, note, run_reporting, started

_FAILED: Final = "Error while executing topic command : "
_ACTIONS: Final = ("list", "describe", "create", "alter", "delete")
_PARTITION_FILTERS: Final = {
    "under-replicated-partitions": "with --describe: only partitions with out-of-sync replicas",
    "unavailable-partitions": "with --describe: only partitions without a live leader",
    "under-min-isr-partitions": "with --describe: only partitions with an ISR below min.insync.replicas",
    "at-min-isr-partitions": "with --describe: only partitions with an ISR of exactly min.insync.replicas",
}
# The actions that allow an option, in the order of Kafka's checks.
_GOES_WITH: Final = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(_PARTITION_FILTERS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}


class Parser(option_parser.Parser):
    def fail_value(self, message: str) -> NoReturn:
        # Kafka's tool parses values only after it has started, so the error has the prefix of failures.
        print(f"{_FAILED}{message}")
        raise SystemExit(1)


def arguments(parser: option_parser.Parser) -> None:
    parser.about = "create, list, describe, alter and delete topics"
    add_client_options(parser, required=False)
    parser.flag("list", "list topic names")
    parser.flag("create", "create a topic")
    parser.flag("delete", "delete topics")
    parser.flag("alter", "add partitions to topics; for settings use `barnabas configs`")
    parser.flag("describe", "describe topics and their partitions")
    parser.option("topic", "topic name; a regular expression except with --create", value="topic")
    parser.option("topic-id", "with --describe: id of the topic", value="id")
    parser.option("config", "with --create: topic setting; repeatable", value="name=value", many=True)
    parser.option("delete-config", "ignored: use `barnabas configs`", value="name", many=True)
    parser.option(
        "partitions",
        "number of partitions (default with --create: num.partitions of the broker); adding partitions"
        " changes which partition a key maps to",
        value="number",
        convert=integer,
    )
    parser.option(
        "replication-factor",
        "with --create: replicas of each partition (default: default.replication.factor of the broker)",
        value="number",
        convert=integer,
    )
    parser.option(
        "replica-assignment",
        "broker ids of each partition's replicas; 1:2,2:3 places partition 0 on brokers 1 and 2, partition 1"
        " on 2 and 3",
        value="id:id,id:id,...",
    )
    for name, text in _PARTITION_FILTERS.items():
        parser.flag(name, text)
    parser.flag(
        "topics-with-overrides",
        "with --describe: only topics that override settings, without their partitions",
    )
    parser.flag("if-exists", "with --alter, --delete, --describe: succeed if no topic matches")
    parser.flag("if-not-exists", "with --create: succeed if the topic exists")
    parser.flag("exclude-internal", "with --list and --describe: skip internal topics")
    parser.option(
        "partition-size-limit-per-response",
        "with --describe: maximum number of partitions per response (default: 2000)",
        value="number",
        convert=integer,
    )


def run(options: Options) -> int:
    action = _check(options)
    return run_reporting(_main(options, action), prefix=_FAILED, to_stdout=not options.json)


def _check(options: Options) -> str:
    """Return the action, or end the program if options conflict."""
    parser = options.parser
    asked = [action for action in _ACTIONS if options.given(action)]
    if len(asked) != 1:
        parser.fail(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
            usage=True,
        )
    if options.given("delete-config"):
        note(
            "delete-config option is no longer supported and deprecated since version 4.0."
            " The config will be fully removed in future releases."
        )
    [action] = asked
    _check_required(options, action)
    for name, actions in _GOES_WITH.items():
        parser.refuse_with(options, name, [other for other in _ACTIONS if other not in actions])
        if name in _PARTITION_FILTERS:
            parser.refuse_with(options, name, ["topics-with-overrides"])
    if action == "create":
        parser.refuse_with(options, "replica-assignment", ["partitions", "replication-factor"])
    return action


def _check_required(options: Options, action: str) -> None:
    parser = options.parser
    if not options.given("bootstrap-server"):
        parser.fail("--bootstrap-server must be specified")
    if action == "describe" and options.if_exists:
        if not options.given("topic") and not options.given("topic-id"):
            parser.fail("--topic or --topic-id is required to describe a topic", usage=True)
        if options.given("topic") and options.given("topic-id"):
            line = (
                "Only topic id will be used when both --topic and --topic-id are specified and topicId is not"
                " Uuid.ZERO_UUID"
            )
            print(line, file=sys.stderr if options.json else sys.stdout)
    if action not in ("list", "describe"):
        parser.require(options, "topic")
    if action == "alter":
        if options.given("config"):
            parser.fail(
                'Option combination "[[config], [bootstrap-server]]" can\'t be used with option "[alter]"'
                " (To alter topic configurations, the kafka-configs tool can be used.)",
                usage=True,
            )
        parser.require(options, "partitions")


async def _main(options: Options, action: str) -> int:
    from barnabas.cli.topic import actions
    from barnabas.client.admin.admin import Admin

    do = {
        "list": actions.list_topics,
        "describe": actions.describe,
        "create": actions.create,
        "alter": actions.alter,
        "delete": actions.delete,
    }[action]
    async with started(Admin(admin_settings(options))) as admin:
        await do(admin, options)
    return 0
