"""Producer settings and the rules between them."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.client.producer.settings import ProducerSettings, producer_settings
from barnabas.records.header import Codec


def settings(**named: object) -> ProducerSettings:
    return producer_settings({"bootstrap.servers": "here:9092"}, named)[0]


def test_defaults_are_those_of_kafka_4_3() -> None:
    given = settings()

    assert (given.acks, given.acks_number) == ("all", -1)
    assert (given.batch_size, given.linger_ms, given.buffer_memory) == (16384, 5, 33554432)
    assert (given.max_block_ms, given.max_request_size) == (60000, 1048576)
    assert (given.delivery_timeout_ms, given.request_timeout_ms) == (120000, 30000)
    assert (given.retries, given.max_in_flight_requests_per_connection) == (2147483647, 5)
    assert given.enable_idempotence
    assert (given.codec, given.level) == (Codec.NONE, None)


@pytest.mark.parametrize(("acks", "number"), [("all", -1), ("-1", -1), (-1, -1), ("0", 0), (1, 1)])
def test_acks_is_a_word_or_a_number(acks: object, number: int) -> None:
    assert settings(acks=acks).acks_number == number


@pytest.mark.parametrize("acks", ["2", "none", ""])
def test_other_acks_are_refused(acks: object) -> None:
    with pytest.raises(InvalidSetting):
        settings(acks=acks)


@pytest.mark.parametrize(
    ("named", "level"),
    [
        ({"compression_type": "gzip"}, None),
        ({"compression_type": "gzip", "compression_gzip_level": 9}, 9),
        ({"compression_type": "lz4"}, None),
        ({"compression_type": "lz4", "compression_lz4_level": 9}, None),
        ({"compression_type": "lz4", "compression_lz4_level": 12}, 12),
        ({"compression_type": "zstd"}, 3),
        ({"compression_type": "zstd", "compression_zstd_level": -5}, -5),
        ({"compression_type": "snappy", "compression_zstd_level": 5}, None),
    ],
)
def test_the_level_is_that_of_the_codec(named: dict[str, object], level: int | None) -> None:
    assert settings(**named).level == level


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"acks": "1"}, "acks=all"),
        ({"acks": "0"}, "acks=all"),
        ({"retries": 0}, "retries above 0"),
        ({"max_in_flight_requests_per_connection": 6}, "at most 5"),
    ],
)
def test_explicit_idempotence_with_conflicting_settings_is_refused(
    named: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        settings(enable_idempotence=True, **named)


@pytest.mark.parametrize("named", [{"acks": "1"}, {"retries": 0}])
def test_default_idempotence_is_disabled_by_conflicting_settings(named: dict[str, object]) -> None:
    assert not settings(**named).enable_idempotence


def test_more_than_five_requests_in_flight_need_idempotence_to_be_disabled() -> None:
    assert settings(enable_idempotence=False, max_in_flight_requests_per_connection=6)
    with pytest.raises(InvalidSetting, match="at most 5"):
        settings(max_in_flight_requests_per_connection=6)


def test_a_delivery_has_time_for_a_linger_and_a_request() -> None:
    with pytest.raises(InvalidSetting, match=r"at least .* = 30005"):
        settings(delivery_timeout_ms=30004)
    assert settings(delivery_timeout_ms=30005).delivery_timeout_ms == 30005
    # delivery.timeout.ms is raised unless it was set explicitly.
    assert settings(request_timeout_ms=200000).delivery_timeout_ms == 200005


def test_a_transactional_id_requires_the_settings_of_idempotence() -> None:
    assert settings(transactional_id="orders-1").enable_idempotence
    assert settings(transactional_id="orders-1").transaction_timeout_ms == 60_000
    for missing in ({"enable_idempotence": False}, {"acks": "1"}, {"retries": 0}):
        with pytest.raises(InvalidSetting, match="needs"):
            settings(transactional_id="orders-1", **missing)


def test_a_transactional_id_is_a_name() -> None:
    with pytest.raises(InvalidSetting, match="a name"):
        settings(transactional_id="")


def test_two_phase_commit_is_off_by_default() -> None:
    asked = {"bootstrap.servers": "a:1", "transaction.two.phase.commit.enable": "true"}

    assert not settings(transactional_id="orders-1").transaction_two_phase_commit_enable
    assert producer_settings(asked, {})[0].transaction_two_phase_commit_enable


@pytest.mark.parametrize("timeout_ms", [1_000, 60_000])
def test_transaction_timeout_with_two_phase_commit_is_refused(timeout_ms: int) -> None:
    with pytest.raises(InvalidSetting, match="cannot be combined with"):
        settings(
            transactional_id="orders-1",
            transaction_two_phase_commit_enable=True,
            transaction_timeout_ms=timeout_ms,
        )
    with pytest.raises(InvalidSetting, match="cannot be combined with"):
        producer_settings(
            {"bootstrap.servers": "a:1", "transaction.timeout.ms": timeout_ms},
            {"transaction_two_phase_commit_enable": True},
        )


def test_a_partitioner_is_a_name_or_a_function() -> None:
    def mine(topic: str, key: bytes | None, count: int) -> int:
        return 0

    assert producer_settings({"bootstrap.servers": "a:1"}, {"partitioner": mine})[1] is mine
    assert producer_settings({"bootstrap.servers": "a:1", "partitioner": mine}, {})[1] is mine
    assert settings(partitioner="fnv1a").partitioner == "fnv1a"
    for wrong in ("custom", "murmur3"):
        with pytest.raises(InvalidSetting, match="one of"):
            settings(partitioner=wrong)
