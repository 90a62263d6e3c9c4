"""producer-perf-test and consumer-perf-test print Kafka's lines with correct figures."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.process.our_broker import OurBroker
from support.process.ports import free_port
from support.process.record_runs import RecordTools, run

# A record may be acknowledged within the millisecond in which it was sent.
NUMBER = r"(?:[0-9]+\.[0-9]+|Infinity)"
TOTAL = re.compile(
    rf"(?P<records>[0-9]+)(?P<steady> steady state)? records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), "
    rf"{NUMBER} ms avg latency, {NUMBER} ms max latency, "
    r"[0-9]+ ms 50th, [0-9]+ ms 95th, [0-9]+ ms 99th, [0-9]+ ms 99\.9th\."
)
WINDOW = re.compile(
    rf"[0-9]+ records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), "
    rf"{NUMBER} ms avg latency, {NUMBER} ms max latency\."
)
COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
UNLIMITED = ("--throughput", "-1")


# A new group waits this long for more members.
INITIAL_DELAY_MS = 200


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    settings = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": INITIAL_DELAY_MS,
        "offsets.topic.num.partitions": 1,
    }
    broker = OurBroker(tmp_path_factory.mktemp("perf"), settings=settings)
    with broker.running():
        yield broker


@pytest.fixture
def tools(broker: OurBroker) -> RecordTools:
    return RecordTools(broker.address)


def made(tools: RecordTools, topic: str, *words: str) -> str:
    assert tools("topics", "--create", "--topic", topic, *words).code == 0
    return topic


def measured(tools: RecordTools, topic: str, count: int, *words: str) -> list[str]:
    done = tools("producer-perf-test", "--topic", topic, "--num-records", str(count), *words)
    assert (done.code, done.err) == (0, "")
    return done.lines


def test_records_of_the_given_number_and_size_are_sent_and_reported(tools: RecordTools) -> None:
    topic = made(tools, "letters", "--partitions", "2")

    (line,) = measured(tools, topic, 1000, "--record-size", "100", *UNLIMITED)

    told = TOTAL.fullmatch(line)
    assert told is not None, line
    assert told["records"] == "1000"
    values = tools.consume(topic, 1000).lines
    assert {len(value) for value in values} == {100}
    assert len(set(values)) == 1000
    assert all(re.fullmatch("[A-Z]+", value) for value in values)


def test_the_steady_state_has_its_own_line(tools: RecordTools) -> None:
    topic = made(tools, "warm")

    lines = measured(tools, topic, 300, "--warmup-records", "100", "--record-size", "10", *UNLIMITED)

    assert lines[0] == (
        "Warmup first 100 records. Steady state results will print after the complete test summary."
    )
    whole, steady = (TOTAL.fullmatch(line) for line in lines[1:])
    assert whole is not None
    assert steady is not None
    assert (whole["records"], whole["steady"]) == ("300", None)
    assert (steady["records"], steady["steady"]) == ("200", " steady state")


def test_a_rate_is_kept_and_reported_in_every_interval(tools: RecordTools) -> None:
    topic = made(tools, "throttled")
    words = ["--throughput", "500", "--reporting-interval", "200", "--payload-monotonic", "--json"]

    done = tools("producer-perf-test", "--topic", topic, "--num-records", "500", *words)

    *windows, total = done.objects
    assert len(windows) >= 2
    assert total["records"] == 500
    # A busy machine only lowers the rate.
    assert total["records_per_second"] < 550
    assert tools.consume(topic, 500).lines == [str(number) for number in range(500)]


def test_every_window_has_a_line(tools: RecordTools) -> None:
    topic = made(tools, "windows")
    words = ["--throughput", "500", "--reporting-interval", "100", "--record-size", "5"]

    *windows, total = measured(tools, topic, 200, *words)

    assert windows
    assert all(WINDOW.fullmatch(line) for line in windows), windows
    assert TOTAL.fullmatch(total)


def test_payloads_come_from_a_file(tools: RecordTools, tmp_path: Path) -> None:
    topic = made(tools, "payloads")
    file = tmp_path / "payloads.txt"
    file.write_text("one;two;three")

    lines = measured(tools, topic, 100, "--payload-file", str(file), "--payload-delimiter", ";", *UNLIMITED)

    assert lines[:2] == [f"Reading payloads from: {file}", "Number of records read: 3"]
    assert set(tools.consume(topic, 100).lines) == {"one", "two", "three"}


def test_deprecated_options_print_warnings_on_stdout(tools: RecordTools, tmp_path: Path) -> None:
    topic = made(tools, "old-names")
    file = tmp_path / "producer.properties"
    file.write_text(f"bootstrap.servers={tools.address}\n")
    words = ["--topic", topic, "--num-records", "1", "--payload-monotonic", *UNLIMITED]

    done = run("producer-perf-test", *words, "--producer.config", str(file), "--producer-props", "acks=1")

    assert done.code == 0
    assert done.lines[:2] == [
        "Option --producer-props has been deprecated and will be removed in a future version. "
        "Use --command-property instead.",
        "Option --producer.config has been deprecated and will be removed in a future version. "
        "Use --command-config instead.",
    ]
    assert TOTAL.fullmatch(done.lines[2])


def test_arrow_tables_send_the_same_records(tools: RecordTools) -> None:
    pytest.importorskip("pyarrow")
    topic = made(tools, "tables")

    lines = measured(
        tools, topic, 30_000, "--arrow", "--payload-monotonic", "--warmup-records", "7", *UNLIMITED
    )

    assert [line.split()[0] for line in lines[1:]] == ["30000", "29993"]
    assert tools.consume(topic, 30_000).lines == [str(number) for number in range(30_000)]


def test_a_missing_topic_ends_the_producer_test(tools: RecordTools) -> None:
    words = ["--num-records", "3", "--record-size", "1", *UNLIMITED, "--command-property", "max.block.ms=300"]

    done = tools("producer-perf-test", "--topic", "nowhere", *words)

    assert (done.code, done.out) == (1, b"")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.err
    assert done.err.count("\n") == 1


def test_failed_records_are_reported_and_not_counted(tools: RecordTools) -> None:
    topic = made(tools, "small", "--config", "max.message.bytes=1000")

    done = tools(
        "producer-perf-test", "--topic", topic, "--num-records", "5", "--record-size", "5000", *UNLIMITED
    )

    assert done.code == 0
    assert done.lines[0].startswith(
        "0 records sent, 0.000000 records/sec (0.00 MB/sec), NaN ms avg latency, "
    )
    assert done.err.splitlines()[-1].startswith("5 records were not delivered: ")


@pytest.fixture
def filled(tools: RecordTools) -> str:
    listed = tools("topics", "--list").lines
    if "filled" not in listed:
        made(tools, "filled", "--partitions", "2")
        measured(tools, "filled", 2000, "--record-size", "1024", *UNLIMITED)
    return "filled"


@pytest.mark.parametrize("how", [(), ("--arrow",)])
def test_consumer_figures_are_comma_separated_values(
    tools: RecordTools, filled: str, how: tuple[str, ...]
) -> None:
    if how:
        pytest.importorskip("pyarrow")

    done = tools("consumer-perf-test", "--topic", filled, "--num-records", "2000", *how)

    assert (done.code, done.err) == (0, "")
    head, line = done.lines
    assert head == f"start.time, end.time, {COLUMNS}"
    began, ended, mb, _, records, _, rebalance_ms, fetch_ms, _, _ = line.split(", ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", began)
    assert began <= ended
    assert (mb, records) == ("1.9531", "2000")
    # The consumer first joined a group, which is rebalance time.
    assert int(rebalance_ms) >= INITIAL_DELAY_MS
    assert int(fetch_ms) > 0


def test_a_group_continues_at_its_committed_offsets(tools: RecordTools, filled: str) -> None:
    words = ["--topic", filled, "--group", "readers", "--json"]
    max_poll = ["--command-property", "max.poll.records=100"]

    first = tools("consumer-perf-test", *words, "--num-records", "1200", *max_poll)
    second = tools("consumer-perf-test", *words, "--num-records", "5000", "--timeout", "1000")

    (told,) = first.objects
    assert told["records"] == 1200
    assert told["rebalance_ms"] >= INITIAL_DELAY_MS
    assert told["rebalance_ms"] + told["fetch_ms"] == told["end_ms"] - told["start_ms"]
    assert told["fetch_records_per_second"] > told["records_per_second"]
    # The committed offsets equal the counted records.
    assert second.objects[0]["records"] == 800


def test_a_group_without_name_gets_a_random_one(tools: RecordTools, filled: str) -> None:
    before = set(tools("consumer-groups", "--list").lines)

    done = tools("consumer-perf-test", "--topic", filled, "--num-records", "2000", "--hide-header")

    assert done.code == 0
    (group,) = set(tools("consumer-groups", "--list").lines) - before
    assert re.fullmatch("perf-consumer-[0-9]{1,5}", group)


def test_the_header_can_be_omitted_and_the_date_format_set(tools: RecordTools, filled: str) -> None:
    words = ["--topic", filled, "--num-records", "10", "--hide-header", "--date-format", "'at' yyyy"]

    (line,) = tools("consumer-perf-test", *words).lines

    assert re.match(r"at 20\d\d, at 20\d\d, ", line)


def test_too_few_records_print_a_warning_and_the_figures(tools: RecordTools, filled: str) -> None:
    done = tools("consumer-perf-test", "--topic", filled, "--messages", "5000", "--timeout", "2000")

    assert done.code == 0
    assert done.lines[0] == "Warning: --messages is deprecated. Use --num-records instead."
    assert done.lines[2] == (
        "WARNING: Exiting before consuming the expected number of records: timeout (2000 ms) exceeded. "
        "You can use the --timeout option to increase the timeout."
    )
    assert done.lines[3].split(", ")[4] == "2000"


def test_detailed_stats_are_printed_per_interval_and_not_at_the_end(tools: RecordTools, filled: str) -> None:
    words = ["--topic", filled, "--num-records", "2000", "--show-detailed-stats", "--reporting-interval", "1"]

    head, *lines = tools("consumer-perf-test", *words).lines

    assert head == f"time, threadId, {COLUMNS}"
    assert lines
    assert all(line.split(", ")[1] == "0" for line in lines)
    # Only the first interval includes the wait for the group.
    waited_ms = [int(line.split(", ")[6]) for line in lines]
    assert waited_ms[0] >= INITIAL_DELAY_MS
    assert not any(waited_ms[1:])
    assert not any(line.startswith("WARNING") for line in lines)


def test_from_latest_reads_only_new_records(tools: RecordTools, filled: str) -> None:
    words = ["--include", "fil.*", "--num-records", "1", "--from-latest", "--timeout", "1000", "--json"]

    done = tools("consumer-perf-test", *words)

    (told,) = done.objects
    assert told["records"] == 0
    assert done.err.startswith("WARNING: Exiting before ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("producer-perf-test", ["--num-records", "1", "--record-size", "1", *UNLIMITED]),
        ("consumer-perf-test", ["--num-records", "1"]),
    ],
)
def test_an_unreachable_broker_is_reported_at_once_and_at_the_end(name: str, words: list[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    patience = ["--command-property", "default.api.timeout.ms=300"]

    done = run(name, "--bootstrap-server", address, "--topic", "t", *words, *patience)

    assert done.code == 1
    at_once, why = done.err.splitlines()
    assert at_once == f"no broker at {address}: Connection refused; retrying"
    assert why.startswith(f"barnabas {name}: no broker at {address}: ")
