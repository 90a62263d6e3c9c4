"""console-consumer in groups: exactly the printed records are committed, however it ends."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from barnabas.cli.console import subscription
from support.process.our_broker import OurBroker
from support.process.record_runs import RecordTools

TIMEOUT_S = 30
RECORDS = 20
PROTOCOLS = ("classic", "consumer")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    settings = {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.assignment.interval.ms": 0,
        "offsets.topic.num.partitions": 1,
        "group.min.session.timeout.ms": 500,
    }
    broker = OurBroker(tmp_path_factory.mktemp("groups"), settings=settings)
    with broker.running():
        yield broker


@pytest.fixture(scope="module")
def tools(broker: OurBroker) -> RecordTools:
    tools = RecordTools(broker.address)
    assert tools("topics", "--create", "--topic", "t").code == 0
    assert tools.produce("t", b"".join(b"%d\n" % number for number in range(RECORDS))).code == 0
    return tools


_numbers = count()


@pytest.fixture
def group() -> str:
    """A new group id."""
    return f"group-{next(_numbers)}"


def committed(tools: RecordTools, group: str) -> dict[str, int | None]:
    """The committed offsets of the group."""
    found = described(tools, group)["partitions"]
    return {f"{one['topic']}-{one['partition']}": one["offset"] for one in found}


def described(tools: RecordTools, group: str, *words: str) -> dict[str, Any]:
    (told,) = tools("consumer-groups", "--describe", "--group", group, *words, "--json").objects
    (found,) = told["groups"]
    assert isinstance(found, dict)
    return found


def numbers(*given: int) -> list[str]:
    return list(map(str, given))


@contextmanager
def running(tools: RecordTools, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "barnabas.cli.main", "console-consumer"]
    command += ["--bootstrap-server", tools.address, *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, bufsize=0, env=environment, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], TIMEOUT_S)[0], "nothing is printed"
    return process.stdout.readline()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_continues_after_printed_records(tools: RecordTools, group: str, protocol: str) -> None:
    words = ["--group", group, "--command-property", f"group.protocol={protocol}"]

    first = tools.consume("t", 7, *words)
    at = committed(tools, group)
    # --from-beginning only applies to partitions without committed offsets.
    second = tools.consume("t", 3, *words)

    assert (first.code, first.lines) == (0, numbers(*range(7)))
    assert first.err == "Processed a total of 7 messages\n"
    assert at == {"t-0": 7}
    assert second.lines == numbers(7, 8, 9)


def test_a_new_group_starts_at_the_log_end(tools: RecordTools, group: str) -> None:
    read = tools("console-consumer", "--topic", "t", "--group", group, "--timeout-ms", "1500")

    assert read == (0, b"", "Processed a total of 0 messages\n")
    assert committed(tools, group) == {"t-0": RECORDS}


def test_without_auto_commit_a_group_commits_nothing(tools: RecordTools, group: str) -> None:
    words = ["--group", group, "--command-property", "enable.auto.commit=false"]

    assert tools.consume("t", 5, *words).lines == tools.consume("t", 5, *words).lines == numbers(*range(5))


def test_without_a_group_no_group_is_created(tools: RecordTools) -> None:
    before = tools("consumer-groups", "--list").lines

    assert tools.consume("t", 5).lines == numbers(*range(5))

    assert tools("consumer-groups", "--list").lines == before


def test_a_group_can_read_all_topics_that_match(tools: RecordTools, group: str) -> None:
    for name in ("match-a", "match-b", "no-match-a"):
        assert tools("topics", "--create", "--topic", name).code == 0
        tools.produce(name, name.encode() + b"\n")

    words = ["--include", "match-.*", "--group", group, "--from-beginning", "--timeout-ms", "10000"]
    read = tools("console-consumer", *words, "--max-messages", "2")

    assert sorted(read.lines) == ["match-a", "match-b"]
    assert committed(tools, group) == {"match-a-0": 1, "match-b-0": 1}


@pytest.mark.parametrize("in_group", [False, True])
def test_internal_topics_match_only_if_requested(tools: RecordTools, group: str, in_group: bool) -> None:
    assert tools.consume("t", 1, "--group", "any").code == 0
    words = ["--include", "__consumer_.*", "--from-beginning", "--max-messages", "1"]
    words += ["--group", group] if in_group else []

    without = tools("console-consumer", *words, "--timeout-ms", "500")
    asked_for = ["--timeout-ms", "10000", "--command-property", "exclude.internal.topics=false"]
    matched = tools("console-consumer", *words, *asked_for)

    assert (without.code, without.err) == (0, "Processed a total of 0 messages\n")
    assert (matched.code, matched.err) == (0, "Processed a total of 1 messages\n")


def test_with_json_there_is_an_object_for_every_record(tools: RecordTools, group: str) -> None:
    objects = tools.consume("t", 3, "--group", group, "--json").objects

    assert [(one["partition"], one["offset"], one["value"]) for one in objects] == [
        (0, 0, "0"),
        (0, 1, "1"),
        (0, 2, "2"),
    ]


def test_an_unprintable_record_is_committed_and_later_ones_are_not(tools: RecordTools, group: str) -> None:
    assert tools("topics", "--create", "--topic", "mixed").code == 0
    tools.produce("mixed", b"abcd\nabc\nabcd\nabcd\n")
    words = ["--group", group, "--value-deserializer", "IntegerDeserializer"]

    failed = tools.consume("mixed", 4, *words)
    at = committed(tools, group)
    rest = tools.consume("mixed", 2, *words)

    assert (failed.code, failed.lines) == (1, ["1633837924"])
    # As in Kafka's tool: otherwise the group would read the record again and again.
    assert at == {"mixed-0": 2}
    assert rest.lines == ["1633837924", "1633837924"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_commits_printed_records(
    tools: RecordTools, group: str, number: signal.Signals, code: int
) -> None:
    with running(tools, "--topic", "t", "--from-beginning", "--group", group) as consumer:
        lines = [first_line(consumer) for _ in range(RECORDS)]

        consumer.send_signal(number)
        _, err = consumer.communicate(timeout=TIMEOUT_S)

    assert lines == [b"%d\n" % each for each in range(RECORDS)]
    assert (consumer.returncode, err) == (code, b"Processed a total of 20 messages\n")
    assert committed(tools, group) == {"t-0": RECORDS}


def test_records_that_were_not_written_are_not_committed(tools: RecordTools, group: str) -> None:
    assert tools("topics", "--create", "--topic", "long").code == 0
    # The first line is larger than the pipe, so no line can have been written completely.
    assert tools.produce("long", b"x" * 200_000 + b"\n" + b"y\n" * 100).code == 0
    with running(tools, "--topic", "long", "--from-beginning", "--group", group) as consumer:
        assert consumer.stdout is not None
        consumer.stdout.read(1)
        consumer.stdout.close()
        assert consumer.wait(TIMEOUT_S) == 0

    assert committed(tools, group) == {"long-0": 0}


def test_a_pausing_reader_of_the_output_does_not_end_the_membership(tools: RecordTools, group: str) -> None:
    assert tools("topics", "--create", "--topic", "paged").code == 0
    assert tools.produce("paged", b"x" * 200_000 + b"\nlast\n").code == 0
    timeouts = ["session.timeout.ms=1000", "heartbeat.interval.ms=200"]
    words = [word for each in timeouts for word in ("--command-property", each)]
    limits = ["--from-beginning", "--max-messages", "2", *words]
    with running(tools, "--topic", "paged", "--group", group, *limits) as consumer:
        assert consumer.stdout is not None
        consumer.stdout.read(1)

        # The output exceeds the pipe, and nothing is read from it for three session timeouts.
        time.sleep(3)
        members = described(tools, group, "--members")["members"]
        out, _ = consumer.communicate(timeout=TIMEOUT_S)

    assert len(members) == 1
    assert out.endswith(b"xxx\nlast\n")
    assert committed(tools, group) == {"paged-0": 2}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_consumers_share_the_partitions(tools: RecordTools, group: str, protocol: str) -> None:
    topic = f"shared-{protocol}"
    assert tools("topics", "--create", "--topic", topic, "--partitions", "2").code == 0
    words = ["--topic", topic, "--group", group, "--formatter-property", "print.partition=true"]
    words += ["--command-property", f"group.protocol={protocol}", "--from-beginning"]
    words += ["--command-property", "heartbeat.interval.ms=100"] if protocol == "classic" else []
    with running(tools, *words) as one, running(tools, *words) as other:
        wait_for_members(tools, group, [1, 1])
        for key, partition in ((b"k", 0), (b"d", 1)):
            keyed = ["--reader-property", "parse.key=true", "--json"]
            (sent,) = tools.produce(topic, key + b"\tv\n", *keyed).objects
            assert sent["partition"] == partition

        lines = {first_line(one), first_line(other)}

    assert lines == {b"Partition:0\tv\n", b"Partition:1\tv\n"}


def wait_for_members(tools: RecordTools, group: str, shares: list[int]) -> None:
    """Wait until the members have these numbers of partitions."""
    deadline = time.monotonic() + TIMEOUT_S
    found: list[int] = []
    while found != shares:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
        # The group does not exist before its first member has joined.
        if group in tools("consumer-groups", "--list").lines:
            members = described(tools, group, "--members")["members"]
            found = sorted(len(each["assignment"]) for each in members)


def test_a_member_without_partitions_reports_it(
    tools: RecordTools, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "PATIENCE_S", 0.5)
    words = ["--topic", "nowhere", "--group", group, "--timeout-ms", "1000"]

    read = tools("console-consumer", *words)

    assert read == (
        0,
        b"",
        f"group {group} has not assigned a partition to this consumer yet; waiting for one\n"
        "Processed a total of 0 messages\n",
    )


def test_a_rejected_member_exits_with_the_reason(tools: RecordTools, group: str) -> None:
    short = ["--command-property", "session.timeout.ms=100", "--command-property", "heartbeat.interval.ms=10"]

    read = tools.consume("t", 1, "--group", group, *short)

    assert (read.code, read.out) == (1, b"")
    told, why = read.err.splitlines()
    assert told == "Processed a total of 0 messages"
    assert "INVALID_SESSION_TIMEOUT" in why
