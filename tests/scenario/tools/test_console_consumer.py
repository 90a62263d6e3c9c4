"""console-consumer: format, start offset and end of the output."""

import struct
import time
from pathlib import Path

import pytest

from support.process.our_broker import OurBroker
from support.process.ports import free_port
from support.process.record_runs import RecordTools, run


@pytest.fixture(scope="module")
def tools(broker: OurBroker) -> RecordTools:
    tools = RecordTools(broker.address)
    assert tools("topics", "--create", "--topic", "orders", "--partitions", "2").code == 0
    for partition, key in ((0, "k"), (1, "d")):
        lines = b"".join(b"h:%d\t%s\tvalue %d-%d\n" % (n, key.encode(), partition, n) for n in range(3))
        properties = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
        sent = tools.produce("orders", lines, *properties, "--json")
        assert {each["partition"] for each in sent.objects} == {partition}
    return tools


def of_partition(tools: RecordTools, *words: str) -> list[str]:
    return tools("console-consumer", "--topic", "orders", "--partition", "0", *words).lines


def test_all_partitions_are_read_and_the_count_is_printed(tools: RecordTools) -> None:
    read = tools.consume("orders", 6)

    assert read.code == 0
    assert sorted(read.lines) == [f"value {partition}-{n}" for partition in (0, 1) for n in range(3)]
    assert read.err == "Processed a total of 6 messages\n"


def test_it_exits_after_the_idle_timeout(tools: RecordTools) -> None:
    begun = time.monotonic()

    read = tools("console-consumer", "--topic", "orders", "--timeout-ms", "200")

    assert time.monotonic() - begun >= 0.2
    assert read == (0, b"", "Processed a total of 0 messages\n")


@pytest.mark.parametrize(
    ("begin", "lines"),
    [
        (["--offset", "1"], ["value 0-1", "value 0-2"]),
        (["--offset", "earliest"], ["value 0-0", "value 0-1", "value 0-2"]),
        (["--from-beginning"], ["value 0-0", "value 0-1", "value 0-2"]),
        (["--offset", "LATEST"], []),
        ([], []),
    ],
)
def test_a_partition_is_read_from_an_offset(tools: RecordTools, begin: list[str], lines: list[str]) -> None:
    assert of_partition(tools, *begin, "--timeout-ms", "1000") == lines


def test_every_field_of_a_record_can_be_printed(tools: RecordTools) -> None:
    names = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")
    properties = [word for name in names for word in ("--formatter-property", f"print.{name}=true")]

    (line,) = of_partition(tools, "--offset", "1", "--max-messages", "1", *properties)

    time_text, *rest = line.split("\t")
    assert time_text.startswith("CreateTime:17")
    assert rest == [
        "Partition:0",
        "Offset:1",
        "Delivery:NOT_PRESENT",
        "Epoch:NOT_PRESENT",
        "h:1",
        "k",
        "value 0-1",
    ]


def test_formatter_properties_can_be_in_a_file(tools: RecordTools, tmp_path: Path) -> None:
    file = tmp_path / "formatter.properties"
    file.write_text("print.key=true\nkey.separator=\\u0020=\\u0020\nline.separator=;\n")
    words = ["--offset", "1", "--max-messages", "1", "--formatter-config", str(file)]

    read = tools("console-consumer", "--topic", "orders", "--partition", "0", *words)

    assert read.out == b"k = value 0-1;"


def test_with_json_a_record_is_an_object(tools: RecordTools) -> None:
    words = ["--topic", "orders", "--partition", "1", "--offset", "2", "--max-messages", "1", "--json"]

    (told,) = tools("console-consumer", *words).objects

    assert told.pop("timestamp") > 1_700_000_000_000
    assert told == {
        "topic": "orders",
        "partition": 1,
        "offset": 2,
        "timestamp_type": "CreateTime",
        "key": "d",
        "value": "value 1-2",
        "headers": [["h", "2"]],
    }


def test_with_json_bytes_that_are_not_utf_8_are_base64(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "binary").code == 0
    tools.produce("binary", b"\xff\x00\n")

    (told,) = tools.consume("binary", 1, "--json").objects

    assert told["value"] == {"base64": "/wA="}


def test_all_topics_that_match_are_read(tools: RecordTools) -> None:
    for name in ("match-a", "match-b", "match-ab"):
        assert tools("topics", "--create", "--topic", name).code == 0
        tools.produce(name, name.encode() + b"\n")

    words = ["--include", "match-[ab]", "--from-beginning", "--max-messages", "2", "--timeout-ms", "10000"]
    read = tools("console-consumer", *words)

    assert sorted(read.lines) == ["match-a", "match-b"]


def test_deserializers_print_numbers(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "numbers").code == 0
    tools.produce("numbers", struct.pack(">q", -(2**40)) + b"\n")

    read = tools.consume("numbers", 1, "--value-deserializer", "LongDeserializer")

    assert read.lines == [str(-(2**40))]


def test_an_unprintable_record_ends_the_program_after_earlier_ones(tools: RecordTools) -> None:
    assert tools("topics", "--create", "--topic", "mixed").code == 0
    tools.produce("mixed", b"abcd\nabc\nabcd\n")
    words = ["--value-deserializer", "org.apache.kafka.common.serialization.IntegerDeserializer"]

    failed = tools.consume("mixed", 3, *words)
    skipped = tools.consume("mixed", 3, *words, "--skip-message-on-error")

    why = "Size of data received by IntegerDeserializer is not 4"
    assert (failed.code, failed.lines) == (1, ["1633837924"])
    assert failed.err == f"Processed a total of 2 messages\nbarnabas console-consumer: {why}\n"
    assert (skipped.code, skipped.lines) == (0, ["1633837924", "1633837924"])
    assert skipped.err == (
        f"Error processing message, skipping this message: {why}\nProcessed a total of 3 messages\n"
    )


def test_formatters_are_known_by_their_names(tools: RecordTools) -> None:
    package = "org.apache.kafka.tools.consumer."
    where = ["--topic", "orders", "--partition", "0", "--offset", "0", "--max-messages", "2"]

    nothing = tools("console-consumer", *where, "--formatter", f"{package}NoOpMessageFormatter")
    logged = tools("console-consumer", *where, "--formatter", "LoggingMessageFormatter")

    assert (nothing.code, nothing.out, nothing.err) == (0, b"", "Processed a total of 2 messages\n")
    assert logged.lines == ["value 0-0", "value 0-1"]
    assert ", key:k, value:value 0-1\n" in logged.err


def test_a_missing_topic_or_partition_is_waited_for(tools: RecordTools) -> None:
    nothing = (0, b"", "Processed a total of 0 messages\n")

    assert tools("console-consumer", "--topic", "nowhere", "--timeout-ms", "300") == nothing
    assert tools("console-consumer", "--include", "nowhere.*", "--timeout-ms", "300") == nothing
    where = ["--topic", "orders", "--partition", "99"]
    assert tools("console-consumer", *where, "--timeout-ms", "300") == nothing


def test_a_deprecated_option_prints_a_warning_on_stdout(tools: RecordTools) -> None:
    words = ["--offset", "0", "--max-messages", "1", "--property", "print.key=true"]

    lines = of_partition(tools, *words, "--consumer-property", "fetch.min.bytes=1")

    assert lines == [
        "Option --consumer-property is deprecated and will be removed in a future version. "
        "Use --command-property instead.",
        "Option --property is deprecated and will be removed in a future version. "
        "Use --formatter-property instead.",
        "k\tvalue 0-0",
    ]


def test_an_unreachable_broker_is_reported_at_once_and_at_the_end() -> None:
    address = f"127.0.0.1:{free_port()}"
    words = ["--topic", "t", "--command-property", "default.api.timeout.ms=300"]

    read = run("console-consumer", "--bootstrap-server", address, *words)

    assert (read.code, read.out) == (1, b"")
    at_once, told, why = read.err.splitlines()
    assert at_once == f"no broker at {address}: Connection refused; retrying"
    assert told == "Processed a total of 0 messages"
    assert why.startswith(f"barnabas console-consumer: no broker at {address}: ")
