"""Producer settings with the names, types and defaults of Kafka 4.3, and the rules between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeAlias

from barnabas.base.setting_rules import Rule, any_of, at_least, between, exactly, one_of
from barnabas.base.settings import InvalidSetting, setting
from barnabas.client.settings import BOOLEAN, INT, LONG, STRING, ClientSettings, parse_settings_of
from barnabas.records.header import Codec

INT32_MAX: Final = 0x7FFFFFFF
# A broker recognizes the last five batches of a producer per partition as duplicates.
IDEMPOTENT_IN_FLIGHT_MAX: Final = 5
ACKS_ALL: Final = -1
# Kafka uses its default, 9, for lz4's fast mode, not for level 9 of the high-compression mode.
LZ4_FAST: Final = 9
CUSTOM: Final = "custom"
PARTITIONERS: Final = (
    "murmur2_random",
    "murmur2",
    "consistent_random",
    "consistent",
    "fnv1a_random",
    "fnv1a",
    "random",
    "sticky",
)

# Topic, key, number of partitions.
PartitionerFunction: TypeAlias = Callable[[str, bytes | None, int], int]

_NOT_EMPTY: Final = Rule("a name", lambda value: isinstance(value, str) and value != "")
_ACKS: Final = {"all": ACKS_ALL, "-1": ACKS_ALL, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(ClientSettings):
    REFUSED: ClassVar[Mapping[str, str]] = {
        "partitioner.class": "Java classes cannot be loaded: set `partitioner` to a name or a function",
        "partitioner.availability.timeout.ms": "not supported: partitions of slow brokers are not avoided",
    }

    acks: str = setting(
        "acks",
        STRING,
        "all",
        "replicas that must have a record before it is acknowledged",
        rule=one_of("all", "-1", "0", "1"),
    )
    batch_size: int = setting("batch.size", INT, 16_384, "largest batch, in bytes", rule=at_least(0))
    linger_ms: int = setting(
        "linger.ms", LONG, 5, "time that a batch waits for more records", rule=at_least(0)
    )
    buffer_memory: int = setting(
        "buffer.memory", LONG, 33_554_432, "memory for unacknowledged records, in bytes", rule=at_least(0)
    )
    max_block_ms: int = setting(
        "max.block.ms",
        LONG,
        60_000,
        "longest time that send() waits for metadata and buffer memory",
        rule=at_least(0),
    )
    max_request_size: int = setting(
        "max.request.size", INT, 1_048_576, "largest request and largest record, in bytes", rule=at_least(0)
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "none",
        "compression codec of batches",
        rule=one_of("none", "gzip", "snappy", "lz4", "zstd"),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        -1,
        "gzip level (-1: zlib's default)",
        rule=any_of(between(1, 9), exactly(-1)),
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        INT,
        9,
        "lz4 level: 9 is the fast mode, as in Kafka; other levels are of the high-compression mode",
        rule=between(1, 17),
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level", INT, 3, "zstd level", rule=between(-131_072, 22)
    )
    enable_idempotence: bool = setting(
        "enable.idempotence", BOOLEAN, True, "write each record once and in order, even if it is sent again"
    )
    max_in_flight_requests_per_connection: int = setting(
        "max.in.flight.requests.per.connection", INT, 5, "requests in flight per connection", rule=at_least(1)
    )
    delivery_timeout_ms: int = setting(
        "delivery.timeout.ms",
        INT,
        120_000,
        "longest time from send() to acknowledgement or failure",
        rule=at_least(0),
    )
    transactional_id: str | None = setting(
        "transactional.id",
        STRING,
        None,
        "lasting name of a transactional producer; an older producer with the same name is fenced",
        rule=_NOT_EMPTY,
    )
    transaction_timeout_ms: int = setting(
        "transaction.timeout.ms",
        INT,
        60_000,
        "the coordinator aborts a transaction that is open for longer",
        rule=at_least(0),
    )
    transaction_two_phase_commit_enable: bool = setting(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "experimental: prepare transactions, without a timeout; the broker has to allow it",
    )
    retries: int = setting("retries", INT, INT32_MAX, "most retries of a batch", rule=between(0, INT32_MAX))
    partitioner: str = setting(
        "partitioner",
        STRING,
        "murmur2_random",
        "partitioner: a name, or a function of topic, key and number of partitions",
        rule=one_of(*PARTITIONERS, CUSTOM),
    )
    partitioner_ignore_keys: bool = setting(
        "partitioner.ignore.keys", BOOLEAN, False, "ignore keys when choosing a partition"
    )
    partitioner_adaptive_partitioning_enable: bool = setting(
        "partitioner.adaptive.partitioning.enable",
        BOOLEAN,
        True,
        "send more records without a key to partitions with shorter queues",
    )

    @property
    def is_transactional(self) -> bool:
        return self.transactional_id is not None

    @property
    def acks_number(self) -> int:
        return _ACKS[self.acks]

    @property
    def codec(self) -> Codec:
        return Codec[self.compression_type.upper()]

    @property
    def level(self) -> int | None:
        """None for the codec's own default."""
        match self.codec:
            case Codec.GZIP:
                return None if self.compression_gzip_level < 0 else self.compression_gzip_level
            case Codec.LZ4:
                return None if self.compression_lz4_level == LZ4_FAST else self.compression_lz4_level
            case Codec.ZSTD:
                return self.compression_zstd_level
            case _:
                return None


def producer_settings(
    given: Mapping[str, object] | None, named: Mapping[str, object]
) -> tuple[ProducerSettings, PartitionerFunction | None]:
    """Parse and check settings; return a partitioner function separately."""
    texts, keywords = dict(given or {}), dict(named)
    function: PartitionerFunction | None = None
    for place in (texts, keywords):
        if callable(place.get("partitioner")):
            function = place["partitioner"]  # type: ignore[assignment]
            place["partitioner"] = CUSTOM
        elif place.get("partitioner") == CUSTOM:
            raise InvalidSetting(
                "partitioner", CUSTOM, f"must be a function, or one of {', '.join(PARTITIONERS)}"
            )
    settings = parse_settings_of(ProducerSettings, texts, keywords)
    if settings.transactional_id is not None and not settings.enable_idempotence:
        raise InvalidSetting("transactional.id", settings.transactional_id, "needs enable.idempotence")
    limited = texts.get("transaction.timeout.ms", keywords.get("transaction_timeout_ms")) is not None
    if settings.transaction_two_phase_commit_enable and limited:
        raise InvalidSetting(
            "transaction.timeout.ms",
            str(settings.transaction_timeout_ms),
            "cannot be combined with transaction.two.phase.commit.enable: such transactions have no timeout",
        )
    asked = (
        settings.transactional_id is not None
        or texts.get("enable.idempotence", keywords.get("enable_idempotence")) is not None
    )
    timed = texts.get("delivery.timeout.ms", keywords.get("delivery_timeout_ms")) is not None
    return _timed(_idempotent(settings, asked), timed), function


def _idempotent(settings: ProducerSettings, asked: bool) -> ProducerSettings:
    """Kafka's rule: conflicting settings disable idempotence, or are an error if it was requested."""
    if not settings.enable_idempotence:
        return settings
    if settings.retries == 0:
        missing = "needs retries above 0"
    elif settings.acks_number != ACKS_ALL:
        missing = f"needs acks=all, not {settings.acks}"
    elif settings.max_in_flight_requests_per_connection > IDEMPOTENT_IN_FLIGHT_MAX:
        # An error even if idempotence was not requested, as in Kafka since 4.0.
        asked = True
        missing = f"needs max.in.flight.requests.per.connection of at most {IDEMPOTENT_IN_FLIGHT_MAX}"
    else:
        return settings
    if asked:
        raise InvalidSetting("enable.idempotence", "true", missing)
    return replace(settings, enable_idempotence=False)


def _timed(settings: ProducerSettings, asked: bool) -> ProducerSettings:
    """Kafka's rule: delivery.timeout.ms covers the linger and one request."""
    least = min(settings.linger_ms + settings.request_timeout_ms, INT32_MAX)
    if settings.delivery_timeout_ms >= least:
        return settings
    if asked:
        raise InvalidSetting(
            "delivery.timeout.ms",
            str(settings.delivery_timeout_ms),
            f"must be at least linger.ms + request.timeout.ms = {least}",
        )
    return replace(settings, delivery_timeout_ms=least)
