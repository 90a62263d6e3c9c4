"""console-producer: lines become records, and failures are reported."""

from pathlib import Path

import pytest

from support.process.our_broker import OurBroker
from support.process.ports import free_port
from support.process.record_runs import RecordTools, run

EVERYTHING = [
    word
    for name in ("key", "headers", "partition", "offset")
    for word in ("--formatter-property", f"print.{name}=true")
]


@pytest.fixture
def tools(broker: OurBroker) -> RecordTools:
    return RecordTools(broker.address)


def made(tools: RecordTools, topic: str, *words: str) -> str:
    done = tools("topics", "--create", "--topic", topic, *words)
    assert done.code == 0, done
    return topic


def test_every_line_is_a_record(tools: RecordTools) -> None:
    topic = made(tools, "lines")

    sent = tools.produce(topic, b"one\ntwo\r\n\nfour \xff")

    assert (sent.code, sent.out, sent.err) == (0, b"", "")
    assert tools.consume(topic, 4).out == b"one\ntwo\n\nfour \xff\n"


def test_empty_input_sends_no_record(tools: RecordTools) -> None:
    topic = made(tools, "nothing")

    assert tools.produce(topic, b"") == (0, b"", "")

    ends = tools("get-offsets", "--topic", topic)
    assert ends.lines == ["nothing:0:0"]


def test_keys_headers_and_nulls_are_parsed_from_the_line(tools: RecordTools) -> None:
    topic = made(tools, "parsed")
    properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL", "key.separator=:"]
    words = [word for each in properties for word in ("--reader-property", each)]

    sent = tools.produce(topic, b"h1:v1,h2:NULL\tkey:value\nNULL\tk:NULL\n", *words)

    assert sent == (0, b"", "")
    assert tools.consume(topic, 2, *EVERYTHING).lines == [
        "Partition:0\tOffset:0\th1:v1,h2:null\tkey\tvalue",
        "Partition:0\tOffset:1\tNO_HEADERS\tk\tnull",
    ]


def test_reader_properties_can_be_in_a_file(tools: RecordTools, tmp_path: Path) -> None:
    topic = made(tools, "filed")
    file = tmp_path / "reader.properties"
    file.write_text("parse.key=true\nkey.separator=|\n")
    words = ["--reader-config", str(file), "--reader-property", "key.separator=/"]

    assert tools.produce(topic, b"k/v|w\n", *words).code == 0

    assert tools.consume(topic, 1, "--formatter-property", "print.key=true").lines == ["k\tv|w"]


def test_a_line_without_separator_ends_the_program_after_earlier_lines(tools: RecordTools) -> None:
    topic = made(tools, "halfway")

    sent = tools.produce(topic, b"a\t1\nnovalue\nb\t2\n", "--reader-property", "parse.key=true")

    assert sent.code == 1
    assert sent.err == "barnabas console-producer: No key separator found on line number 2: 'novalue'\n"
    assert tools("get-offsets", "--topic", topic).lines == ["halfway:0:1"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_can_be_compressed(tools: RecordTools, codec: str) -> None:
    topic = made(tools, f"packed-{codec}")
    lines = b"".join(b"line %d\n" % number for number in range(1000))

    assert tools.produce(topic, lines, "--compression-codec", codec).code == 0

    assert tools.consume(topic, 1000).out == lines


def test_with_sync_every_record_is_its_own_batch(tools: RecordTools) -> None:
    topic = made(tools, "one-by-one")

    sent = tools.produce(topic, b"a\nb\nc\n", "--sync", "--json")

    assert [each["offset"] for each in sent.objects] == [0, 1, 2]


def test_with_json_offsets_are_printed_in_the_order_of_the_input(tools: RecordTools) -> None:
    topic = made(tools, "told", "--partitions", "3")
    lines = b"".join(b"k%d\tv\n" % number for number in range(30))

    sent = tools.produce(topic, lines, "--json", "--reader-property", "parse.key=true")

    told = sent.objects
    assert len(told) == 30
    assert {each["topic"] for each in told} == {"told"}
    assert {each["partition"] for each in told} == {0, 1, 2}
    for partition in range(3):
        offsets = [each["offset"] for each in told if each["partition"] == partition]
        assert offsets == list(range(len(offsets)))


def test_a_deprecated_option_prints_a_warning_on_stdout(tools: RecordTools) -> None:
    topic = made(tools, "old")
    words = ["--property", "parse.key=true", "--producer-property", "acks=1"]

    sent = tools.produce(topic, b"k\tv\n", *words)

    assert (sent.code, sent.err) == (0, "")
    assert sent.lines == [
        "Warning: --producer-property is deprecated and will be removed in a future version. "
        "Use --command-property instead.",
        "Warning: --property is deprecated and will be removed in a future version. "
        "Use --reader-property instead.",
    ]


def test_a_missing_topic_is_reported_for_every_record_and_exits_with_zero(tools: RecordTools) -> None:
    sent = tools.produce("nowhere", b"hello\n\n", "--max-block-ms", "300")

    assert (sent.code, sent.out) == (0, b"")
    first, second = sent.err.splitlines()
    assert first.startswith(
        "Error when sending message to topic nowhere with key: null, value: 5 bytes with error: "
    )
    assert "UNKNOWN_TOPIC_OR_PARTITION" in first
    assert "value: 0 bytes" in second


def test_with_sync_a_failed_record_ends_the_program(tools: RecordTools) -> None:
    sent = tools.produce("nowhere", b"hello\nworld\n", "--max-block-ms", "300", "--sync")

    assert (sent.code, sent.out) == (1, b"")
    assert sent.err.startswith("barnabas console-producer: ")
    assert sent.err.count("\n") == 1


def test_a_too_large_record_is_reported_and_the_others_are_sent(tools: RecordTools) -> None:
    topic = made(tools, "large")

    sent = tools.produce(topic, b"a\n" + b"x" * 2_000_000 + b"\nb\n")

    assert sent.code == 0
    assert "value: 2000000 bytes with error: " in sent.err
    assert tools.consume(topic, 2).out == b"a\nb\n"


def test_an_unknown_setting_is_rejected(tools: RecordTools) -> None:
    sent = tools.produce("any", b"a\n", "--command-property", "lingerms=5")

    assert sent.code == 1
    assert sent.err.startswith("barnabas console-producer: ")
    assert "lingerms" in sent.err
    assert sent.err.count("\n") == 1


def test_an_unreachable_broker_is_reported_at_once_and_at_the_end() -> None:
    address = f"127.0.0.1:{free_port()}"
    words = ["--topic", "t", "--command-property", "default.api.timeout.ms=300"]

    sent = run("console-producer", "--bootstrap-server", address, *words, stdin=b"a\n")

    assert (sent.code, sent.out) == (1, b"")
    at_once, why = sent.err.splitlines()
    assert at_once == f"no broker at {address}: Connection refused; retrying"
    assert why.startswith(f"barnabas console-producer: no broker at {address}: ")
