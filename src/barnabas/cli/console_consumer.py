"""`barnabas console-consumer`: print the records of topics, as kafka-console-consumer.sh of Kafka 4.3.

Flags, output, messages and exit codes are Kafka's. With --group the group assigns the partitions, and printed
records are committed. Without --group, Kafka's tool joins a group with a random name; ours assigns itself all
partitions, which prints the same and leaves no group behind. If the broker is unreachable or a record cannot
be read, the exit code is 1, where Kafka's is 0. --json prints one object per record to stdout.
"""

from typing import TYPE_CHECKING, Final

from barnabas.cli.console.settings import add_stream_options, given_settings, key_values, merge_options, warn
from barnabas.cli.option_parser import LONG_MAX, Options, Parser, integer, long
from barnabas.cli.tool import BOOTSTRAP, ToolFailed, note, read_properties, run_async

if TYPE_CHECKING:
    from barnabas.cli.console.consuming import Wanted
    from barnabas.cli.console.formatters import Formatter

CLIENT_ID: Final = "console-consumer"
NO_LIMIT: Final = -1
EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_RESET: Final = "auto.offset.reset"
_GROUP: Final = "group.id"
_AUTO_COMMIT: Final = "enable.auto.commit"
# Generated group names end with a random number below this, as in Kafka's tool.
_GROUP_NUMBER_END: Final = 100_000
_RENAMED: Final = (("command-property", "consumer-property"), ("command-config", "consumer.config"))


def arguments(parser: Parser) -> None:
    parser.about = "print the records of topics to standard output"
    add_stream_options(parser, "each record")
    parser.option("topic", "topic to read", value="topic")
    parser.option("include", "regular expression of the topics to read", value="regex")
    parser.option("partition", "partition to read", value="partition", convert=integer)
    parser.option(
        "offset",
        "start offset in --partition: a number, earliest or latest (default: latest)",
        value="offset",
    )
    parser.flag(
        "from-beginning",
        "start at the earliest record, not at the log end; a group starts at its committed offsets if it has "
        "any",
    )
    parser.option("max-messages", "exit after this number of records", value="number", convert=integer)
    parser.option("timeout-ms", "exit if no record arrives for this time", value="ms", convert=long)
    parser.option(
        "isolation-level",
        "read_uncommitted or read_committed, which skips uncommitted records (default: read_uncommitted)",
        value="level",
        default="read_uncommitted",
    )
    parser.option(
        "group",
        "consumer group: share partitions with its members, start at its committed offsets, and commit "
        "printed records",
        value="group",
    )
    parser.flag("enable-systest-events", "print shutdown_complete at the end")
    _add_format_options(parser)
    parser.option("consumer-property", "(DEPRECATED) --command-property", value="name=value", many=True)
    parser.option("consumer.config", "(DEPRECATED) --command-config", value="file")


def _add_format_options(parser: Parser) -> None:
    parser.option(
        "formatter",
        "record formatter: DefaultMessageFormatter, LoggingMessageFormatter, NoOpMessageFormatter of "
        "org.apache.kafka.tools.consumer, or its formatters of internal topics",
        value="class",
    )
    parser.option(
        "formatter-property",
        "formatter property; repeatable. Columns: print.timestamp, print.partition, print.offset, "
        "print.delivery, print.epoch, print.headers, print.key (default: false), print.value (default: "
        "true); separators: key.separator, line.separator, headers.separator; text for null: null.literal; "
        "deserializers: key.deserializer, value.deserializer, headers.deserializer",
        value="name=value",
        many=True,
    )
    parser.option("property", "(DEPRECATED) --formatter-property", value="name=value", many=True)
    parser.option(
        "formatter-config", "file of formatter properties; --formatter-property overrides it", value="file"
    )
    parser.option(
        "key-deserializer",
        "Kafka deserializer of keys: StringDeserializer, LongDeserializer, ...",
        value="class",
    )
    parser.option("value-deserializer", "Kafka deserializer of values", value="class")
    parser.flag("skip-message-on-error", "skip records that cannot be printed")


def run(options: Options) -> int:
    _check(options)
    settings = consumer_settings(options)
    wanted = _wanted(options, in_group=_GROUP in settings and not options.given("partition"))
    formatter = _formatter(options)
    from barnabas.cli.console.consuming import consume

    code = run_async(consume(settings, wanted, formatter))
    if options.enable_systest_events:
        print("shutdown_complete")
    return code


def _check(options: Options) -> None:
    fail = options.parser.fail
    if options.given("topic") == options.given("include"):
        fail("Exactly one of the following arguments is required: [topic], [include]", usage=True)
    if options.given("partition"):
        if not options.given("topic"):
            fail("The topic is required when partition is specified.", usage=True)
        if options.from_beginning and options.given("offset"):
            fail("Options from-beginning and offset cannot be specified together.", usage=True)
    elif options.given("offset"):
        fail("The partition is required when offset is specified.", usage=True)
    options.parser.require(options, "bootstrap-server")
    for name, old in _RENAMED:
        if options.given(name) and options.given(old):
            fail(f"Options --{old} and --{name} cannot be specified together.", usage=True)
    for name, old in _RENAMED:
        if options.given(old):
            _warn_of(options, old, name)


def _warn_of(options: Options, old: str, name: str) -> None:
    warn(
        options,
        f"Option --{old} is deprecated and will be removed in a future version. Use --{name} instead.",
    )


def consumer_settings(options: Options) -> dict[str, object]:
    """Return the settings of the consumer."""
    file = options.command_config or getattr(options, "consumer.config")
    of_file = given_settings(file, ())
    of_properties = given_settings(None, options.command_property or options.consumer_property)
    settings = {**of_file, **of_properties}
    _set_group(settings, _given_group(options, of_file, of_properties))
    if _RESET in settings:
        if options.from_beginning and settings[_RESET] != EARLIEST:
            raise ToolFailed(
                f"Can't simultaneously specify --from-beginning and '{_RESET}={settings[_RESET]}', "
                "please remove one option"
            )
    else:
        settings[_RESET] = EARLIEST if options.from_beginning else LATEST
    settings[BOOTSTRAP] = options.bootstrap_server
    settings.setdefault("client.id", CLIENT_ID)
    merge_options(settings, options, {"isolation.level": "isolation-level"})
    return settings


def _given_group(options: Options, *given: dict[str, object]) -> str | None:
    """Return the group of --group, the file and the properties, which must not contradict each other."""
    names = {str(settings[_GROUP]) for settings in given if _GROUP in settings}
    if options.given("group"):
        names.add(options.group)
    if len(names) > 1:
        options.parser.fail(
            "The group ids provided in different places (directly using '--group', "
            "via '--consumer-property', or via '--consumer.config') do not match. Detected group ids: "
            + ", ".join(f"'{name}'" for name in sorted(names)),
            usage=True,
        )
    if names and options.given("partition"):
        options.parser.fail("Options group and partition cannot be specified together.", usage=True)
    return next(iter(names), None)


def _set_group(settings: dict[str, object], group: str | None) -> None:
    if group is not None:
        settings[_GROUP] = group
    elif str(settings.get(_AUTO_COMMIT)).strip().lower() == "true":
        # Commits need a group; a random name keeps other consumers out of it.
        from random import randrange

        settings[_GROUP] = f"{CLIENT_ID}-{randrange(_GROUP_NUMBER_END)}"


def _wanted(options: Options, *, in_group: bool) -> "Wanted":
    from barnabas.cli.console.consuming import Wanted

    return Wanted(
        topic=options.topic,
        include=_include(options),
        in_group=in_group,
        partition=options.partition,
        begin=_begin(options),
        records_max=NO_LIMIT if options.max_messages is None else options.max_messages,
        idle_ms_max=options.timeout_ms
        if options.timeout_ms is not None and options.timeout_ms >= 0
        else None,
        skip_errors=options.skip_message_on_error,
    )


def _include(options: Options) -> str | None:
    from barnabas.cli.console.subscription import compiled

    pattern = compiled(options.include)
    return None if pattern is None else pattern.pattern


def _begin(options: Options) -> int | str:
    """Return an offset, `earliest` or `latest`."""
    if not options.given("offset"):
        return EARLIEST if options.from_beginning else LATEST
    text: str = options.offset
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        offset = long(text)
    except ValueError:
        offset = -1
    if not 0 <= offset <= LONG_MAX:
        options.parser.fail(
            f"The provided offset value '{text}' is incorrect. "
            "Valid values are 'earliest', 'latest', or a non-negative long.",
            usage=True,
        )
    return offset


def _formatter(options: Options) -> "Formatter":
    if options.given("property") and options.given("formatter-property"):
        options.parser.fail(
            "Options --property and --formatter-property cannot be specified together.", usage=True
        )
    if options.given("property"):
        _warn_of(options, "property", "formatter-property")
    properties = read_properties(options.formatter_config) if options.formatter_config is not None else {}
    for name in ("key", "value"):
        text = getattr(options, f"{name}_deserializer")
        if text:
            properties[f"{name}.deserializer"] = text
    properties.update(key_values(options.formatter_property or options.property))
    return _formatter_named(options, properties)


def _formatter_named(options: Options, properties: dict[str, str]) -> "Formatter":
    from barnabas.cli.console import formatters

    if options.json:
        if options.given("formatter"):
            options.parser.fail("Options --json and --formatter cannot be specified together.", usage=True)
        from barnabas.cli.console.json_formatter import json_formatter

        return json_formatter(properties)
    name = options.formatter or formatters.DEFAULT
    if "." not in name:
        name = formatters.PACKAGE + name
    match name:
        case formatters.DEFAULT:
            return formatters.default_formatter(properties)
        case formatters.LOGGING:
            return formatters.logging_formatter(properties, note)
        case formatters.NO_OP:
            return formatters.no_op_formatter
    from barnabas.cli.console.internal_formatters import internal_formatter

    found = internal_formatter(name)
    if found is None:
        options.parser.fail(f"--formatter {name}: cannot load Java classes", usage=True)
    return found
