"""`barnabas console-producer`: send each input line as a record: kafka-console-producer.sh of Kafka 4.3.

Flags, defaults, messages and exit codes are Kafka's: failed deliveries are reported on stderr, and only with
--sync they end the program. Differences: an unreachable broker ends the program with 1; bytes that are not
UTF-8 are sent unchanged; compression.type among the properties applies unless --compression-codec is given;
Java classes cannot be loaded as line readers. --json prints one object per record to stdout: its offset, or
the error.
"""

from typing import TYPE_CHECKING, Final

from barnabas.cli.console.settings import (
    add_stream_options,
    check_bootstrap,
    given_settings,
    key_values,
    merge_options,
    warn,
)
from barnabas.cli.option_parser import Options, Parser, integer, long
from barnabas.cli.tool import BOOTSTRAP, ToolFailed, read_properties, run_async

if TYPE_CHECKING:
    from barnabas.cli.console.line_reader import LineReader

CLIENT_ID: Final = "console-producer"

# Setting -> option.
_MERGED: Final = {
    "linger.ms": "timeout",
    "acks": "request-required-acks",
    "request.timeout.ms": "request-timeout-ms",
    "retries": "message-send-max-retries",
    "retry.backoff.ms": "retry-backoff-ms",
    "send.buffer.bytes": "socket-buffer-size",
    "buffer.memory": "max-memory-bytes",
    "metadata.max.age.ms": "metadata-expiry-ms",
    "max.block.ms": "max-block-ms",
    "batch.size": "batch-size",
}
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# (option, its deprecated name); the two must not be combined.
_RENAMED: Final = (
    ("command-config", "producer.config"),
    ("command-property", "producer-property"),
    ("reader-property", "property"),
)


def arguments(parser: Parser) -> None:
    parser.about = "write each line of standard input to a topic as a record"
    add_stream_options(parser, "each record: its offset, or the error")
    parser.option("topic", "REQUIRED: topic to write to", value="topic")
    parser.flag("sync", "wait for the acknowledgement of each record before reading the next")
    parser.option(
        "compression-codec",
        f"compression codec: {', '.join(_CODECS)} (without a value: gzip)",
        value="codec",
        value_optional=True,
    )
    _add_producer_options(parser)
    _add_property_options(parser)


def _add_producer_options(parser: Parser) -> None:
    for name, text, convert, default in (
        ("batch-size", "batch.size: maximum bytes of a batch", integer, 16384),
        ("message-send-max-retries", "retries: maximum retries of a batch", integer, 3),
        ("retry-backoff-ms", "retry.backoff.ms: backoff before a retry", long, 100),
        ("timeout", "linger.ms: wait for more records of a batch", long, 1000),
        ("request-timeout-ms", "request.timeout.ms: timeout of a request", integer, 1500),
        ("metadata-expiry-ms", "metadata.max.age.ms: maximum age of metadata", long, 300_000),
        ("max-block-ms", "max.block.ms: wait for metadata and buffer space", long, 60_000),
        ("max-memory-bytes", "buffer.memory: bytes of records in flight", long, 33_554_432),
        ("socket-buffer-size", "send.buffer.bytes: size of the socket send buffer", integer, 102_400),
    ):
        parser.option(name, f"{text} (default: {default})", value="number", convert=convert, default=default)
    parser.option("max-partition-memory-bytes", "(DEPRECATED) --batch-size", value="number", convert=integer)
    parser.option("request-required-acks", "acks: all, -1, 0 or 1 (default: -1)", value="acks", default="-1")


def _add_property_options(parser: Parser) -> None:
    parser.option("producer-property", "(DEPRECATED) --command-property", value="name=value", many=True)
    parser.option("producer.config", "(DEPRECATED) --command-config", value="file")
    parser.option(
        "reader-property",
        "line reader property; repeatable. Defaults: parse.key=false, key.separator=\\t, "
        "parse.headers=false, headers.delimiter=\\t, headers.separator=, (a regular expression), "
        "headers.key.separator=:, ignore.error=false, null.marker= (text that stands for null). "
        "A line with headers and a key is NAME:VALUE,NAME:VALUE\\tKEY\\tVALUE",
        value="name=value",
        many=True,
    )
    parser.option("property", "(DEPRECATED) --reader-property", value="name=value", many=True)
    parser.option(
        "reader-config", "file of line reader properties; --reader-property overrides it", value="file"
    )
    parser.option("line-reader", "not supported, except for Kafka's LineMessageReader", value="class")


def run(options: Options) -> int:
    _check(options)
    settings = producer_settings(options)
    reader = line_reader(options)
    from barnabas.cli.console.producing import produce

    return run_async(
        produce(settings, options.topic, reader, wait_for_each=options.sync, as_json=options.json)
    )


def _check(options: Options) -> None:
    parser = options.parser
    parser.require(options, "topic")
    for name, old in _RENAMED:
        if options.given(name) and options.given(old):
            parser.fail(f"Options --{name} and --{old} cannot be specified together.", usage=True)
    for name, old in (_RENAMED[1], _RENAMED[0], _RENAMED[2]):
        if options.given(old):
            warn(
                options,
                f"Warning: --{old} is deprecated and will be removed in a future version. "
                f"Use --{name} instead.",
            )
    if options.given("max-partition-memory-bytes"):
        warn(
            options,
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
            "Use --batch-size instead.",
        )
    check_bootstrap(options)


def producer_settings(options: Options) -> dict[str, object]:
    """Return the settings of the producer."""
    file = options.command_config or getattr(options, "producer.config")
    settings = given_settings(file, options.command_property or options.producer_property)
    settings[BOOTSTRAP] = options.bootstrap_server
    settings.setdefault("client.id", CLIENT_ID)
    if options.given("compression-codec"):
        settings["compression.type"] = options.compression_codec or "gzip"
    merge_options(settings, options, _MERGED)
    if options.given("max-partition-memory-bytes"):
        settings["batch.size"] = options.max_partition_memory_bytes
    return settings


def line_reader(options: Options) -> "LineReader":
    from barnabas.cli.console.line_reader import READER_CLASS, LineReader

    if options.line_reader not in (None, READER_CLASS, READER_CLASS.rpartition(".")[2]):
        raise ToolFailed(f"--line-reader {options.line_reader}: cannot load Java classes")
    properties = read_properties(options.reader_config) if options.reader_config is not None else {}
    properties.update(key_values(options.reader_property or options.property))
    return LineReader(properties)
