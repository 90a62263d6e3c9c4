"""Kafka's own tools for records and ours against the same Kafka 4.3: what they print, and how they end.

Both read what either wrote. Usage texts differ, so what is wrong with a command line counts by its first
line. Figures of measurements differ from run to run: lines are compared with every number as N.
"""

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.kafka_broker import KafkaBroker
from support.kafka_tools import TIMEOUT_S, KafkaTools, kafka_tools

CLASSES = {
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
}
SERIALIZERS = "org.apache.kafka.common.serialization."
FORMATTERS = "org.apache.kafka.tools.consumer."


class Told(NamedTuple):
    code: int
    out: bytes
    err: str


class Both:
    """The same command line for Kafka's tool and for ours."""

    def __init__(self, tools: KafkaTools, address: str) -> None:
        self._classpath = tools.classpath
        self.address = address

    def theirs(self, tool: str, *words: str, stdin: bytes = b"") -> Told:
        java = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-XX:TieredStopAtLevel=1"]
        return self._run([*java, "-cp", self._classpath, CLASSES[tool]], words, stdin)

    def ours(self, tool: str, *words: str, stdin: bytes = b"") -> Told:
        return self._run([sys.executable, "-m", "barnabas.cli.main", tool], words, stdin)

    def _run(self, program: list[str], words: tuple[str, ...], stdin: bytes) -> Told:
        command = [*program, "--bootstrap-server", self.address, *words]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=TIMEOUT_S)
        return Told(done.returncode, done.stdout, done.stderr.decode())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    tools = kafka_tools()
    # Kafka's tools read in a group, which would wait three seconds for others to join.
    settings = {"group.initial.rebalance.delay.ms": 0}
    broker = KafkaBroker(tools, tmp_path_factory.mktemp("kafka"), settings=settings)
    broker.format()
    with broker.running() as address:
        yield Both(tools, address)


PARSED = [
    word
    for each in ("parse.key=true", "parse.headers=true", "null.marker=NULL", "ignore.error=true")
    for word in ("--reader-property", each)
]
LINES = (
    b"h1:v1,h2:v2\tkey\tvalue\n"
    b"NULL\tk\tNULL\n"
    b"h:NULL,x\tNULL\tumlaut \xc3\xa4\r\n"
    b",\tk\tno header\n"
    b"nothing of it\n"
    b"a:b:c,d:\tk\t\n"
    b"\n"
    b"last:1\tk\twithout an end"
)
EVERYTHING = [
    word
    for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")
    for word in ("--formatter-property", f"print.{name}=true")
]


@pytest.fixture(scope="module")
def written(both: Both) -> str:
    """The same lines, first by Kafka's producer and then by ours."""
    for tool in (both.theirs, both.ours):
        sent = tool("console-producer", "--topic", "written", *PARSED, stdin=LINES)
        assert (sent.code, sent.out) == (0, b""), sent
    return "written"


def shown(told: Told) -> tuple[int, list[bytes]]:
    return told.code, told.out.splitlines()


def test_lines_become_the_same_records_in_both_producers(both: Both, written: str) -> None:
    words = ["--topic", written, "--partition", "0", "--offset", "earliest", "--max-messages", "16"]
    names = ("headers", "key")
    properties = [word for name in names for word in ("--formatter-property", f"print.{name}=true")]

    lines = both.theirs("console-consumer", *words, *properties).out.split(b"\n")[:-1]

    assert len(lines) == 16
    assert lines[:8] == lines[8:]


@pytest.mark.parametrize(
    "words",
    [
        ["--partition", "0", "--offset", "earliest", "--max-messages", "16", *EVERYTHING],
        ["--partition", "0", "--offset", "5", "--max-messages", "1"],
        [
            *("--partition", "0", "--offset", "earliest", "--max-messages", "3"),
            *("--formatter-property", "print.key=true", "--formatter-property", "key.separator=|"),
            *("--formatter-property", "line.separator=;", "--formatter-property", "null.literal=NIL"),
            *("--formatter-property", "print.headers=true", "--formatter-property", "headers.separator=&"),
        ],
        ["--from-beginning", "--max-messages", "16", "--formatter-property", "print.value=false"],
        ["--from-beginning", "--max-messages", "2", "--property", "print.key=true"],
        ["--from-beginning", "--max-messages", "2", "--formatter", f"{FORMATTERS}NoOpMessageFormatter"],
    ],
    ids=["everything", "one offset", "separators", "nothing", "old flag", "no-op"],
)
def test_both_consumers_print_the_same(both: Both, written: str, words: list[str]) -> None:
    theirs = both.theirs("console-consumer", "--topic", written, *words)
    ours = both.ours("console-consumer", "--topic", written, *words)

    assert shown(ours) == shown(theirs)
    # Kafka's may have advertised another group protocol before.
    assert ours.err.splitlines()[-1] == theirs.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Integer", struct.pack(">i", -7)),
        ("Double", struct.pack(">d", 1234567890.5)),
        ("Float", struct.pack(">f", 0.1)),
        ("Boolean", b"\x01"),
        ("UUID", b"123E4567-e89b-12d3-a456-426614174000"),
        ("Bytes", b"a\\b\xff"),
        ("ByteBuffer", b"abc"),
    ],
)
def test_both_deserialize_the_same(both: Both, name: str, data: bytes) -> None:
    topic = f"values-{name}"
    sent = both.ours("console-producer", "--topic", topic, stdin=data + b"\n")
    assert sent.code == 0, sent
    words = ["--topic", topic, "--partition", "0", "--offset", "0", "--max-messages", "1"]
    by = ["--formatter-property", f"value.deserializer={SERIALIZERS}{name}Deserializer"]

    theirs = both.theirs("console-consumer", *words, *by)
    ours = both.ours("console-consumer", *words, *by)

    assert theirs.out
    assert shown(ours) == shown(theirs)


def test_both_show_the_offsets_of_groups(both: Both, written: str) -> None:
    read = both.theirs(
        "console-consumer", "--topic", written, "--group", "g", "--from-beginning", "--max-messages", "16"
    )
    assert read.code == 0, read
    where = ["--topic", "__consumer_offsets", "--partition", "0", "--offset", "earliest"]
    for name in ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter"):
        words = [*where, "--timeout-ms", "3000", "--formatter", FORMATTERS + name]

        theirs = both.theirs("console-consumer", *words)
        ours = both.ours("console-consumer", *words)

        assert b'"group":"g"' in theirs.out
        assert shown(ours) == shown(theirs)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("console-consumer", ["--topic", "t", "--partition", "0", "--offset", "abc"]),
        ("console-consumer", ["--topic", "t", "--offset", "3"]),
        ("console-consumer", []),
        ("console-consumer", ["--topic", "t", "--no-such-flag"]),
        ("console-producer", []),
        (
            "console-producer",
            ["--topic", "t", "--reader-property", "a=b", "--property", "a=b"],
        ),
        ("consumer-perf-test", ["--topic", "t"]),
    ],
)
def test_a_command_line_that_cannot_be_is_refused_in_the_same_words(
    both: Both, tool: str, words: list[str]
) -> None:
    theirs = both.theirs(tool, *words)
    ours = both.ours(tool, *words)

    assert (ours.code, ours.out) == (theirs.code, theirs.out) == (1, b"")
    assert ours.err.splitlines()[0] == theirs.err.splitlines()[0]


def test_a_line_that_is_no_record_ends_both_producers(both: Both) -> None:
    words = ["--topic", "written", "--reader-property", "parse.key=true"]

    theirs = both.theirs("console-producer", *words, stdin=b"novalue\n")
    ours = both.ours("console-producer", *words, stdin=b"novalue\n")

    assert ours.code == theirs.code == 1
    why = "No key separator found on line number 1: 'novalue'"
    assert theirs.err.splitlines()[0].endswith(why)
    assert ours.err.endswith(f"{why}\n")


def masked(told: Told) -> list[str]:
    """Every number as N, so that only the words are left."""
    return [re.sub(r"\d+(\.\d+)?", "N", line) for line in told.out.decode().splitlines()]


def test_both_measure_a_producer_in_the_same_lines(both: Both, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("a\n\nb\n")
    for words in (
        ["--num-records", "3000", "--warmup-records", "1000", "--record-size", "100"],
        ["--num-records", "100", "--payload-file", str(file)],
        ["--num-records", "10", "--payload-monotonic", "--producer-props", "linger.ms=1"],
    ):
        given = ["--topic", "measured", "--throughput", "-1", *words]

        theirs = both.theirs("producer-perf-test", *given)
        ours = both.ours("producer-perf-test", *given)

        assert ours.code == theirs.code == 0
        assert masked(ours) == masked(theirs)


def test_both_measure_a_consumer_in_the_same_lines(both: Both) -> None:
    sent = both.ours(
        *("producer-perf-test", "--topic", "read", "--num-records", "5000", "--record-size", "100"),
        *("--throughput", "-1"),
    )
    assert sent.code == 0, sent
    for words in (
        ["--num-records", "5000"],
        ["--messages", "5001", "--timeout", "5000", "--hide-header", "--date-format", "yyyy"],
    ):
        theirs = both.theirs("consumer-perf-test", "--topic", "read", *words)
        ours = both.ours("consumer-perf-test", "--topic", "read", *words)

        assert ours.code == theirs.code == 0
        assert masked(ours) == masked(theirs)
        # How much was read is no matter of luck.
        assert ours.out.split(b", ")[-8:-4:2] == theirs.out.split(b", ")[-8:-4:2]
