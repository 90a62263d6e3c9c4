"""Unmodified clients in every version that they speak, old ones included: the broker offers less and less."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from support.our_client.real_clients import CLIENTS, Client, ConfluentKafka, KafkaPython
from support.sample_records import ODD_RECORDS, numbered
from support.wire.capture_answers import ANSWERS
from support.wire.capture_broker import CaptureBroker

pytestmark = pytest.mark.kernel

TOPIC = "orders"
FIRST_OFFSET = 2
# Fetch has the most versions. When InitProducerId is down to its oldest, nobody need be idempotent any more.
STEPS = len(api(ApiKey.FETCH).versions.all())
IDEMPOTENT_STEPS = len(api(ApiKey.INIT_PRODUCER_ID).versions.all())
# librdkafka rests for half a second before it asks for an offset or a producer id, and again in each step.
STEPS_AT_A_TIME = 5


def span(first: int, last: int) -> set[int]:
    return {*range(first, last + 1)}


# What each client speaks at least; a newer release may add to it. kafka-python takes a broker without
# Metadata 4 for one from before record batches, and sends it the message sets of that time.
SPOKEN: dict[str, dict[ApiKey, set[int]]] = {
    "confluent-kafka": {
        ApiKey.PRODUCE: span(3, 10),
        ApiKey.FETCH: span(4, 12) | span(15, 16),
        ApiKey.LIST_OFFSETS: span(1, 7),
        ApiKey.METADATA: span(0, 13),
        ApiKey.FIND_COORDINATOR: span(0, 2),
        ApiKey.API_VERSIONS: {0, 3},
        ApiKey.INIT_PRODUCER_ID: span(0, 4),
    },
    "kafka-python": {
        ApiKey.PRODUCE: span(3, 9),
        ApiKey.FETCH: span(4, 12),
        ApiKey.LIST_OFFSETS: span(1, 11),
        ApiKey.METADATA: span(4, 13),
        ApiKey.API_VERSIONS: span(0, 4),
        ApiKey.INIT_PRODUCER_ID: span(0, 4),
    },
    "aiokafka": {
        ApiKey.PRODUCE: span(3, 7),
        ApiKey.FETCH: span(4, 11),
        ApiKey.LIST_OFFSETS: span(1, 3),
        ApiKey.METADATA: span(0, 5),
        ApiKey.API_VERSIONS: {0},
        ApiKey.INIT_PRODUCER_ID: {0},
    },
}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_records_pass_in_every_version_of_a_client(
    client: Client, record_property: Callable[[str, object], None]
) -> None:
    with ThreadPoolExecutor(STEPS_AT_A_TIME) as pool:
        brokers = list(pool.map(lambda step: there_and_back(client, step), range(STEPS)))

    seen: dict[ApiKey, set[int]] = {}
    for broker in brokers:
        for key, versions in broker.wire_versions().items():
            seen.setdefault(key, set()).update(versions)
    record_property("wire_versions", {key.name: sorted(versions) for key, versions in seen.items()})
    for key, versions in SPOKEN[client.name].items():
        assert versions <= seen[key], key.name


def there_and_back(client: Client, step: int) -> CaptureBroker:
    sent = [record for record in ODD_RECORDS if client.can_send(record)]
    with CaptureBroker({TOPIC: 1}, newest=newest_versions(client, step)) as broker:
        client.produce(broker.address, TOPIC, sent, idempotent=step < IDEMPOTENT_STEPS)
        broker.logs[TOPIC, 0].start = FIRST_OFFSET
        found = client.consume(broker.address, TOPIC, count=len(sent) - FIRST_OFFSET)

    assert [record for _, record in found] == numbered(sent)[FIRST_OFFSET:], broker.versions
    broker.check_exchanges()
    return broker


def newest_versions(client: Client, step: int) -> dict[ApiKey, int]:
    """The newest version of each API less `step`, but not older than the client can do."""
    newest = {}
    for key in ANSWERS:
        known = api(key).versions
        oldest = min(SPOKEN[client.name].get(key, {known.first}))
        newest[key] = max(oldest, known.last - step)
    return newest


# aiokafka asks in version 0 from the start.
@pytest.mark.parametrize("client", [ConfluentKafka(), KafkaPython()], ids=lambda client: client.name)
def test_a_client_newer_than_the_broker_retries_with_a_supported_version(client: Client) -> None:
    with CaptureBroker({TOPIC: 1}, newest={ApiKey.API_VERSIONS: 0}) as broker:
        client.produce(broker.address, TOPIC, ODD_RECORDS[:3])
        found = client.consume(broker.address, TOPIC, count=3, from_offset=0)

    assert [record for _, record in found] == numbered(ODD_RECORDS[:3])
    assert min(broker.refused) > 0
    assert broker.wire_versions()[ApiKey.API_VERSIONS] == {0}
    broker.check_exchanges()
