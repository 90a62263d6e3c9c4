"""Requests with which a run finds open transactions of earlier runs: few, and supported by old brokers."""

from collections import Counter
from collections.abc import Iterator

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.spark.options.sink import Scope
from support.process.our_broker import OurBroker
from support.spark.sink_runs import ROWS, Query
from support.wire.recording_proxy import RecordingProxy

SETTINGS = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2}
KIP_664 = (ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordingProxy]:
    with RecordingProxy() as proxy:
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        broker = OurBroker(tmp_path_factory.mktemp("broker"), settings={**SETTINGS, **advertised})
        proxy.broker_port = broker.port
        with broker.running():
            yield proxy


@pytest.fixture
def query(proxy: RecordingProxy) -> Iterator[Query]:
    proxy.lower, proxy.hidden = 0, ()
    yield Query(proxy.address)
    proxy.lower, proxy.hidden = 0, ()


def keys_of(proxy: RecordingProxy) -> Counter[ApiKey]:
    """Return the requests since the last call, except the client's own."""
    keys = Counter(ApiKey(int.from_bytes(frame[:2], "big")) for _, frame in proxy.frames)
    proxy.frames.clear()
    for each in (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
        del keys[each]
    return keys


def test_later_commits_of_a_run_send_nothing_for_it(query: Query, proxy: RecordingProxy) -> None:
    run = query.run(3)
    run.commit(run.write())
    slots = run.write(1)
    keys_of(proxy)
    run.commit(slots, 1)

    assert keys_of(proxy) == {ApiKey.OFFSET_FETCH: 1, ApiKey.OFFSET_COMMIT: 1, ApiKey.END_TXN: 3}


def test_later_commits_without_rows_look_at_the_record_only(query: Query, proxy: RecordingProxy) -> None:
    run = query.run(2)
    run.commit(run.write())
    slots = run.write(1, without=[0, 1])
    keys_of(proxy)
    run.commit(slots, 1)

    assert keys_of(proxy) == {ApiKey.OFFSET_FETCH: 1}


def test_later_commits_of_whole_batches_send_nothing_for_it(query: Query, proxy: RecordingProxy) -> None:
    run = query.run(3, scope=Scope.BATCH)
    run.commit_whole(run.write_whole())
    parts = run.write_whole(1)
    keys_of(proxy)
    run.commit_whole(parts, 1)

    keys = keys_of(proxy)
    # Newer transaction versions add the group implicitly.
    del keys[ApiKey.ADD_OFFSETS_TO_TXN]
    assert keys == {ApiKey.TXN_OFFSET_COMMIT: 1, ApiKey.END_TXN: 1}


def test_a_broker_that_cannot_select_ids_lists_all(query: Query, proxy: RecordingProxy) -> None:
    proxy.lower = 1
    query.run(3).write()
    run = query.run(2)
    run.commit(run.write())

    assert query.open_ids() == []


def test_the_record_replaces_the_list_on_old_brokers(query: Query, proxy: RecordingProxy) -> None:
    before = query.run(3)
    before.commit(before.write())
    before.write(1)
    run = query.run(2)
    proxy.hidden = KIP_664
    run.commit(run.write(1), 1)
    proxy.hidden = ()

    assert (query.seen(), query.open_ids()) == (list(range(2 * ROWS)), [])
