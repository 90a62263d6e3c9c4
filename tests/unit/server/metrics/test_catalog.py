"""Metrics: every value equals that of its component, and Prometheus' parser reads every line."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from time import thread_time

import pytest

from barnabas.base.exposition import PIECE_LINES, Dialect, Kind, Metric, Sample, labelled, render
from barnabas.base.ids import TopicPartition
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.server.metrics.catalog import TABLE, exposition
from barnabas.server.metrics.sources import Scrape, Sources, Space
from barnabas.storage.errors import CorruptLog
from support.hosted import hosted, image_of, one_topic, partition_image, topic_id
from support.log.logs import put, send
from support.log.managers import A, B, on_a_loop
from support.observed import lines_of, sources_of
from support.prometheus_text import Family, read_exposition


async def busy() -> Sources:
    """Something of everything."""
    image = image_of(
        {
            "orders": [partition_image()] * 2,
            "shared": [partition_image(replicas=(1, 2))],
            "__consumer_offsets": [partition_image()],
        }
    )
    broker = await hosted(image)
    broker.services.groups.start(image)
    broker.services.groups.shards.host_of("readers").shard.classic.new("readers")
    log = broker.log("orders", 1)
    put(log, b"a", b"b", b"c")
    send(log, 7, 0, txn=True)
    log.roll(0)
    broker.settle()
    log.advance_start(1)
    sources = sources_of(broker, "PLAINTEXT", "INTERNAL", committed_offset=14)
    for took_ns in (1_000, 64_000, 65_000, 5_000_000_000):
        sources.stats.served(ApiKey.FETCH, took_ns)
    pool = sources.pools()["PLAINTEXT"]
    pool.bytes_in, pool.bytes_out, pool.accepted, pool.refused = 11, 12, 13, 14
    return sources


def value(families: dict[str, Family], family: str, **labels: object) -> float:
    """The one sample of a family with these labels."""
    wanted = tuple((name, str(one)) for name, one in labels.items())
    found = [number for (_, has), number in families[family].samples.items() if has == wanted]
    assert len(found) == 1, f"{family}{wanted}: {families[family].samples}"
    return found[0]


@on_a_loop
async def test_partition_metrics_equal_their_logs() -> None:
    sources = await busy()
    log = sources.replicas.get(TopicPartition("orders", 1)).log

    families = read_exposition(lines_of(sources))

    where = {"topic": "orders", "partition": 1}
    assert value(families, "barnabas_log_start_offset", **where) == 1
    assert value(families, "barnabas_log_high_watermark", **where) == 4
    assert value(families, "barnabas_log_last_stable_offset", **where) == 3
    assert value(families, "barnabas_log_end_offset", **where) == 4
    assert value(families, "barnabas_log_size_bytes", **where) == log.size > 0
    assert value(families, "barnabas_log_segments", **where) == 2
    assert len(families["barnabas_log_end_offset"].samples) == 4


@on_a_loop
async def test_partitions_are_counted_by_state() -> None:
    sources = await busy()
    sources.replicas.get(TopicPartition("orders", 0)).log.take_out_of_service(
        CorruptLog("x", position=0, what="y")
    )

    families = read_exposition(lines_of(sources))

    assert value(families, "barnabas_partitions") == 4
    assert value(families, "barnabas_partitions_led") == 4
    assert value(families, "barnabas_partitions_offline") == 1
    assert value(families, "barnabas_partitions_under_replicated") == 0
    assert value(families, "barnabas_partitions_under_min_isr") == 0


@on_a_loop
async def test_an_under_replicated_partition_is_counted() -> None:
    image = partition_image(replicas=(1, 2))
    broker = await hosted(
        image_of({"orders": [replace(image, isr=(1,))]}, {"orders": {"min.insync.replicas": "2"}})
    )

    families = read_exposition(lines_of(sources_of(broker)))

    assert value(families, "barnabas_partitions_under_replicated") == 1
    assert value(families, "barnabas_partitions_under_min_isr") == 1


@on_a_loop
async def test_requests_are_a_histogram_by_api() -> None:
    families = read_exposition(lines_of(await busy()))

    samples = families["barnabas_request_duration_seconds"].samples
    api = ("api", "FETCH")
    name = "barnabas_request_duration_seconds"
    assert samples[f"{name}_bucket", (api, ("le", "6.4e-05"))] == 2
    assert samples[f"{name}_bucket", (api, ("le", "0.000256"))] == 3
    assert samples[f"{name}_bucket", (api, ("le", "4.194304"))] == 3
    assert samples[f"{name}_bucket", (api, ("le", "+Inf"))] == 4
    assert samples[f"{name}_count", (api,)] == 4
    assert samples[f"{name}_sum", (api,)] == pytest.approx(5.00013)


@on_a_loop
async def test_connections_are_counted_by_listener() -> None:
    families = read_exposition(lines_of(await busy()))

    for name, number in {
        "barnabas_network_received_bytes_total": 11,
        "barnabas_network_sent_bytes_total": 12,
        "barnabas_connections_accepted_total": 13,
        "barnabas_connections_refused_total": 14,
        "barnabas_connections": 0,
    }.items():
        assert value(families, name, listener="PLAINTEXT") == number
        assert value(families, name, listener="INTERNAL") == 0


@on_a_loop
async def test_fetch_sessions_are_counted() -> None:
    broker = await one_topic()
    topic = FetchTopic(topic_id=topic_id("orders"), partitions=[FetchPartition(partition=n) for n in (0, 1)])
    broker.services.sessions.plan(FetchRequest(session_epoch=0, topics=[topic]), 13, 0)
    broker.services.sessions.evicted = 5

    families = read_exposition(lines_of(sources_of(broker)))

    assert value(families, "barnabas_fetch_sessions") == 1
    assert value(families, "barnabas_fetch_session_partitions") == 2
    assert value(families, "barnabas_fetch_session_evictions_total") == 5


@on_a_loop
async def test_directories_report_state_and_measured_space() -> None:
    broker = await one_topic()
    broker.logs.fail_directory(broker.logs.directories[1], OSError("gone"))

    families = read_exposition(lines_of(sources_of(broker), {A: Space(10, 100)}))

    assert value(families, "barnabas_log_directory_online", path=A) == 1
    assert value(families, "barnabas_log_directory_online", path=B) == 0
    assert value(families, "barnabas_log_directory_free_bytes", path=A) == 10
    assert value(families, "barnabas_log_directory_total_bytes", path=A) == 100
    assert len(families["barnabas_log_directory_free_bytes"].samples) == 1


@on_a_loop
async def test_the_metadata_lag_is_the_number_of_unapplied_committed_records() -> None:
    families = read_exposition(lines_of(await busy()))

    assert value(families, "barnabas_metadata_offset") == 10
    assert value(families, "barnabas_metadata_lag_records") == 4


@on_a_loop
async def test_process_metrics_have_the_standard_names() -> None:
    families = read_exposition(lines_of(await busy()))

    assert value(families, "process_resident_memory_bytes") == 50_000_000
    assert value(families, "process_cpu_seconds_total") == 1.5
    assert value(families, "process_start_time_seconds") == 1_700_000_000.25
    assert value(families, "process_open_fds") == 20
    assert value(families, "process_max_fds") == 1024
    assert value(families, "barnabas_build_info", version="0.1", node_id=1, cluster_id="c") == 1


@pytest.mark.parametrize("dialect", list(Dialect))
@on_a_loop
async def test_every_row_of_the_table_is_rendered_with_the_labels_it_declares(dialect: Dialect) -> None:
    sources = await busy()
    open_metrics = dialect is Dialect.OPEN_METRICS

    families = read_exposition(lines_of(sources, {A: Space(1, 2)}, dialect), open_metrics=open_metrics)

    assert list(families) == [row.metric.family(dialect) for row in TABLE]
    for row in TABLE:
        family = families[row.metric.family(dialect)]
        assert family.type == row.metric.type(dialect)
        for _, labels in family.samples:
            assert tuple(name for name, _ in labels if name != "le") == row.metric.labels


@pytest.mark.parametrize("dialect", list(Dialect))
@on_a_loop
async def test_the_parser_of_prometheus_reads_every_line(dialect: Dialect) -> None:
    module = "openmetrics.parser" if dialect is Dialect.OPEN_METRICS else "parser"
    parser = pytest.importorskip(f"prometheus_client.{module}")
    data = lines_of(await busy(), {A: Space(1, 2)}, dialect)

    families = list(parser.text_string_to_metric_families(data.decode()))

    ours = read_exposition(data, open_metrics=dialect is Dialect.OPEN_METRICS)
    theirs = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }
    assert theirs == {
        (name, tuple(sorted(labels))): number
        for family in ours.values()
        for (name, labels), number in family.samples.items()
    }


@pytest.mark.parametrize("nasty", ['a"b', "a\\b", "a\nb", "a} 1", 'a"b\\c\nd} 1', "ü"])
def test_label_values_are_escaped(nasty: str) -> None:
    metric = Metric("m", Kind.GAUGE, 'says "what" \\ it\nis', ("name",))

    (text,) = render(metric, [Sample(labelled(name=nasty), 2)], Dialect.TEXT)
    (other,) = render(metric, [Sample(labelled(name=nasty), 2)], Dialect.OPEN_METRICS)

    assert value(read_exposition(text), "m", name=nasty) == 2
    assert b'# HELP m says "what" \\\\ it\\nis\n' in text
    assert b'# HELP m says \\"what\\" \\\\ it\\nis\n' in other


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1, b"1"),
        (2**63 - 1, b"9223372036854775807"),
        (0.25, b"0.25"),
        (float("inf"), b"+Inf"),
        (float("nan"), b"NaN"),
    ],
)
def test_numbers_are_formatted_exactly(number: float, shown: bytes) -> None:
    (text,) = render(Metric("m", Kind.GAUGE, "h"), [Sample("", number)], Dialect.TEXT)

    assert text.endswith(b"\nm " + shown + b"\n")


def test_names_follow_the_rules_of_the_format() -> None:
    names = [row.metric.name for row in TABLE]

    assert len(set(names)) == len(names)
    for row in TABLE:
        assert row.metric.name.endswith("_total") == (row.metric.kind is Kind.COUNTER)
        assert row.metric.help.endswith(".")


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """Switch the garbage collector off: its duration depends on earlier tests, not on the code under test."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage")
@on_a_loop
async def test_ten_thousand_partitions_are_rendered_in_short_pieces() -> None:
    broker = await one_topic()
    sources = sources_of(broker)
    partition = broker.partition("orders")
    sources.replicas.partitions = {TopicPartition("topic", n): partition for n in range(10_000)}

    began = thread_time()
    scrape = Scrape(sources, {})
    longest, text = thread_time() - began, b""
    pieces = exposition(scrape, Dialect.TEXT)
    began = thread_time()
    for piece in pieces:
        longest = max(longest, thread_time() - began)
        text += piece
        assert piece.count(b"\n") <= PIECE_LINES + 2
        began = thread_time()

    assert len(read_exposition(text)["barnabas_log_end_offset"].samples) == 10_000
    # Of the processor. The longest takes about four milliseconds; a slow machine and the collector have room.
    assert longest < 0.1
