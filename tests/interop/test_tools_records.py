"""Kafka's own tools for records and ours against the same broker: output and exit codes.

The broker is Kafka 4.3, and for groups also ours. Each tool reads what the other wrote, and continues a group
where the other stopped. Usage texts differ, so only the first line of an error is compared. Measured figures
differ from run to run, so lines are compared with every number replaced by N.
"""

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.kafka.broker import KafkaBroker
from support.kafka.tools import TIMEOUT_S, KafkaTools, kafka_tools
from support.process.our_broker import OurBroker

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
    # Kafka's tools read in a group, which would wait three seconds for more members.
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
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
    """Write the same lines with Kafka's producer, then with ours."""
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
    # Kafka's tool may print a hint about the group protocol first.
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


@pytest.fixture(scope="module")
def both_on_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    broker = OurBroker(tmp_path_factory.mktemp("ours"), settings={"group.initial.rebalance.delay.ms": 0})
    with broker.running() as address:
        yield Both(kafka_tools(), address)


@pytest.fixture(params=["kafka", "barnabas"])
def either(request: pytest.FixtureRequest) -> Both:
    """Both tools, on a broker of Kafka and on ours."""
    found: Both = request.getfixturevalue("both" if request.param == "kafka" else "both_on_ours")
    return found


def offsets(both: Both, group: str) -> list[list[str]]:
    """Return topic, partition and offset of every commit of the group."""
    told = both.ours("consumer-groups", "--describe", "--group", group)
    assert told.code == 0, told
    rows = [line.split() for line in told.out.decode().splitlines()]
    return sorted(row[1:4] for row in rows if row[:1] == [group])


def counted(both: Both, topic: str, lines: list[str]) -> None:
    sent = both.ours(
        "console-producer", "--topic", topic, stdin="".join(f"{each}\n" for each in lines).encode()
    )
    assert sent.code == 0, sent


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_both_commit_printed_records_and_continue_where_the_other_stopped(
    either: Both, protocol: str
) -> None:
    topic = f"counted-{protocol}"
    counted(either, topic, [str(number) for number in range(20)])
    how = ["--command-property", f"group.protocol={protocol}", "--from-beginning", "--timeout-ms", "20000"]
    shown_by_both, offsets_of_both = [], []
    for first, second in ((either.theirs, either.ours), (either.ours, either.theirs)):
        group = f"{protocol}-{first.__name__}"
        words = ["--topic", topic, "--group", group, *how]

        told = [first("console-consumer", *words, "--max-messages", "7")]
        offsets_of_both.append(offsets(either, group))
        told.append(second("console-consumer", *words, "--max-messages", "5"))
        offsets_of_both.append(offsets(either, group))

        shown_by_both.append([shown(each) for each in told])
        assert {each.err.splitlines()[-1] for each in told} == {
            "Processed a total of 7 messages",
            "Processed a total of 5 messages",
        }

    numbers = [b"%d" % number for number in range(12)]
    assert shown_by_both == [[(0, numbers[:7]), (0, numbers[7:])]] * 2
    assert offsets_of_both == [[[topic, "0", "7"]], [[topic, "0", "12"]]] * 2


@pytest.mark.parametrize(
    ("words", "committed"),
    [
        (["--command-property", "enable.auto.commit=false"], None),
        (["--timeout-ms", "5000"], "4"),
        (["--value-deserializer", f"{SERIALIZERS}IntegerDeserializer"], "2"),
        (["--include", "odd.*"], "4"),
    ],
    ids=["nothing", "until nothing comes", "a record that cannot be printed", "topics that match"],
)
def test_both_commit_the_same_offsets(both: Both, words: list[str], committed: str | None) -> None:
    topic = "odd-lengths"
    if topic not in both.ours("topics", "--list").out.decode().split():
        counted(both, topic, ["abcd", "abc", "abcd", "abcd"])
    given = [] if "--include" in words else ["--topic", topic]
    given += ["--from-beginning", *words] + ([] if "--timeout-ms" in words else ["--max-messages", "4"])
    found = []
    for tool in (both.theirs, both.ours):
        group = f"left-{words[0]}-{tool.__name__}"

        told = tool("console-consumer", *given, "--group", group)

        found.append((shown(told), offsets(both, group)))

    assert found[0] == found[1]
    assert found[0][1] == ([] if committed is None else [[topic, "0", committed]])


def test_both_print_committed_offsets_of_groups(both: Both, written: str) -> None:
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
        ("console-consumer", ["--topic", "t", "--group", "g", "--partition", "0"]),
        ("console-consumer", ["--topic", "t", "--command-property", "group.id=g", "--partition", "0"]),
        ("console-consumer", ["--topic", "t", "--group", "g", "--command-property", "group.id=h"]),
        ("console-consumer", ["--topic", "t", "--group", "g", "--command-property", "group.id="]),
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
def test_invalid_command_lines_have_kafkas_messages(both: Both, tool: str, words: list[str]) -> None:
    theirs = both.theirs(tool, *words)
    ours = both.ours(tool, *words)

    assert (ours.code, ours.out) == (theirs.code, theirs.out) == (1, b"")
    assert ours.err.splitlines()[0] == theirs.err.splitlines()[0]


def test_an_invalid_line_ends_both_producers(both: Both) -> None:
    words = ["--topic", "written", "--reader-property", "parse.key=true"]

    theirs = both.theirs("console-producer", *words, stdin=b"novalue\n")
    ours = both.ours("console-producer", *words, stdin=b"novalue\n")

    assert ours.code == theirs.code == 1
    why = "No key separator found on line number 1: 'novalue'"
    assert theirs.err.splitlines()[0].endswith(why)
    assert ours.err.endswith(f"{why}\n")


def masked(told: Told) -> list[str]:
    """Replace every number with N."""
    return [re.sub(r"\d+(\.\d+)?", "N", line) for line in told.out.decode().splitlines()]


def test_both_print_the_same_lines_for_a_producer(both: Both, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("a\n\nb\n")
    for words in (
        ["--num-records", "3000", "--warmup-records", "1000", "--record-size", "100"],
        ["--num-records", "100", "--payload-file", str(file)],
        ["--num-records", "10", "--payload-monotonic", "--producer-props", "linger.ms=1"],
        ["--num-records", "3000", "--record-size", "100", "--transaction-duration-ms", "20"],
    ):
        given = ["--topic", "measured", "--throughput", "-1", *words]

        theirs = both.theirs("producer-perf-test", *given)
        ours = both.ours("producer-perf-test", *given)

        assert ours.code == theirs.code == 0
        assert masked(ours) == masked(theirs)


def test_both_print_no_figures_if_a_commit_fails(both: Both) -> None:
    # A batch exceeds max.message.bytes of the topic.
    words = ["--topic", "measured", "--throughput", "-1", "--num-records", "1", "--record-size", "2000000"]
    larger = ["max.request.size=10000000", "transactional.id=large"]

    theirs = both.theirs("producer-perf-test", *words, "--command-property", *larger)
    ours = both.ours("producer-perf-test", *words, "--command-property", *larger)

    assert (ours.code, ours.out) == (theirs.code, theirs.out) == (1, b"")
    assert "RecordTooLargeException" in theirs.err
    assert "MESSAGE_TOO_LARGE" in ours.err


def test_both_print_the_same_lines_for_a_consumer(either: Both) -> None:
    sent = either.ours(
        *("producer-perf-test", "--topic", "read", "--num-records", "5000", "--record-size", "100"),
        *("--throughput", "-1"),
    )
    assert sent.code == 0, sent
    for words in (
        ["--num-records", "5000"],
        ["--messages", "5001", "--timeout", "5000", "--hide-header", "--date-format", "yyyy"],
    ):
        theirs = either.theirs("consumer-perf-test", "--topic", "read", *words)
        ours = either.ours("consumer-perf-test", "--topic", "read", *words)

        assert ours.code == theirs.code == 0
        assert masked(ours) == masked(theirs)
        # The amount of data is the same in every run.
        assert ours.out.split(b", ")[-8:-4:2] == theirs.out.split(b", ")[-8:-4:2]
        assert all(rebalance_ms(each) > 0 for each in (ours, theirs))


def rebalance_ms(told: Told) -> int:
    """Of the last line."""
    return int(told.out.decode().splitlines()[-1].split(", ")[6])


def test_both_perf_consumers_use_the_given_group(either: Both) -> None:
    counted(either, "in-group", [str(number) for number in range(1000)])
    words = [
        "--topic",
        "in-group",
        "--num-records",
        "500",
        "--show-detailed-stats",
        "--reporting-interval",
        "1",
    ]
    for tool in (either.theirs, either.ours):
        group = f"measured-{tool.__name__}"

        told = tool("consumer-perf-test", *words, "--group", group)

        assert told.code == 0, told
        head, first, *_ = told.out.decode().splitlines()
        assert head.startswith("time, threadId, ")
        assert int(first.split(", ")[6]) > 0
        # A poll returns at most 500 records.
        assert offsets(either, group) == [["in-group", "0", "500"]]
