"""`barnabas consumer-perf-test`: measure consume throughput: kafka-consumer-perf-test.sh of Kafka 4.3.

Flags, the lines of comma-separated values and exit codes are Kafka's, except that an unreachable broker is an
error. The consumer is a member of a group and commits what it read; the wait for an assignment counts as
rebalancing. The client makes an object of every record, as in Kafka's tool; --arrow reads Arrow tables
instead, which measures the broker more than the client.
"""

from typing import Final

from barnabas.cli.console.settings import add_stream_options, given_settings, warn
from barnabas.cli.option_parser import Options, Parser, integer, long
from barnabas.cli.tool import BOOTSTRAP, ToolFailed, run_async

CLIENT_ID: Final = "perf-consumer-client"
DATE_FORMAT: Final = "yyyy-MM-dd HH:mm:ss:SSS"
TIMEOUT_MS: Final = 10_000
REPORTING_INTERVAL_MS: Final = 5000
# Generated group names end with a random number below this, as in Kafka's tool.
_GROUP_NUMBER_END: Final = 100_000


def arguments(parser: Parser) -> None:
    parser.about = "read records of topics at full speed and print the throughput"
    add_stream_options(parser, "each line of figures")
    parser.option("topic", "topic to read", value="topic")
    parser.option("include", "regular expression of the topics to read", value="regex")
    parser.option("num-records", "REQUIRED: number of records to read", value="number", convert=long)
    parser.option("messages", "(DEPRECATED) --num-records", value="number", convert=long)
    parser.option(
        "group",
        "consumer group; reading starts at its committed offsets (default: a random one)",
        value="group",
    )
    _add_reading_options(parser)
    _add_printing_options(parser)
    parser.option("consumer.config", "(DEPRECATED) --command-config", value="file")


def _add_reading_options(parser: Parser) -> None:
    parser.option(
        "fetch-size",
        "max.partition.fetch.bytes: bytes of a partition per response (default: 1048576)",
        value="bytes",
        convert=integer,
        default=1_048_576,
    )
    parser.option(
        "socket-buffer-size",
        "receive.buffer.bytes: size of the socket receive buffer (default: 2097152)",
        value="bytes",
        convert=integer,
        default=2_097_152,
    )
    parser.flag(
        "from-latest",
        "start at the log end, not at the earliest record; a group starts at its committed offsets if it has "
        "any",
    )
    parser.option(
        "timeout",
        f"exit if no record arrives for this time (default: {TIMEOUT_MS})",
        value="ms",
        convert=long,
        default=TIMEOUT_MS,
        value_optional=True,
    )
    parser.flag("arrow", "read Arrow tables instead of single records (needs pyarrow)")


def _add_printing_options(parser: Parser) -> None:
    parser.flag("show-detailed-stats", "print a line for each interval instead of one at the end")
    parser.option(
        "reporting-interval",
        f"length of an interval (default: {REPORTING_INTERVAL_MS})",
        value="ms",
        convert=_interval,
        default=REPORTING_INTERVAL_MS,
    )
    parser.flag("hide-header", "omit the header line")
    parser.option(
        "date-format", f"time format, as of Java's SimpleDateFormat (default: {DATE_FORMAT})", value="format"
    )
    parser.flag("print-metrics", "not supported: this client has no metrics")


def _interval(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return long(text)


def run(options: Options) -> int:
    _check(options)
    settings = consumer_settings(options)
    from barnabas.cli.perf.consuming import Test, measure
    from barnabas.cli.perf.java_format import DateFormat

    test = Test(
        topic=options.topic,
        include=options.include,
        records=options.num_records if options.messages is None else options.messages,
        idle_ms_max=TIMEOUT_MS if options.timeout == "" else options.timeout,
        reporting_interval_ms=options.reporting_interval,
        detailed=options.show_detailed_stats,
        header=not options.hide_header,
        dates=DateFormat(options.date_format or DATE_FORMAT),
        arrow=options.arrow,
        as_json=options.json,
    )
    return run_async(measure(settings, test))


def _check(options: Options) -> None:
    parser = options.parser
    parser.require(options, "bootstrap-server")
    for one, other in (("topic", "include"), ("messages", "num-records")):
        if options.given(one) == options.given(other):
            parser.fail(f"Exactly one of the following arguments is required: [{one}], [{other}]", usage=True)
    parser.refuse_with(options, "consumer.config", ["command-config"])
    if options.given("messages"):
        warn(options, "Warning: --messages is deprecated. Use --num-records instead.")
    if options.given("consumer.config"):
        warn(options, "Warning: --consumer.config is deprecated. Use --command-config instead.")
    if options.reporting_interval <= 0:
        raise ToolFailed("Reporting interval must be greater than 0.")
    if options.include is not None:
        from barnabas.cli.console.subscription import compiled

        compiled(options.include)
    if options.print_metrics:
        raise ToolFailed("--print-metrics is not supported: this client has no metrics")


def consumer_settings(options: Options) -> dict[str, object]:
    """Return the settings of the consumer."""
    file = options.command_config or getattr(options, "consumer.config")
    settings = given_settings(file, options.command_property)
    # As in Kafka's tool, group.id in a file or a property is ignored.
    settings["group.id"] = _random_group() if options.group is None else options.group
    settings[BOOTSTRAP] = options.bootstrap_server
    settings["receive.buffer.bytes"] = options.socket_buffer_size
    settings["max.partition.fetch.bytes"] = options.fetch_size
    settings["auto.offset.reset"] = "latest" if options.from_latest else "earliest"
    settings["check.crcs"] = "false"
    settings.setdefault("client.id", CLIENT_ID)
    return settings


def _random_group() -> str:
    from random import randrange

    return f"perf-consumer-{randrange(_GROUP_NUMBER_END)}"
