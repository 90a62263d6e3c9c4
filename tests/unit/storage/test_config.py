"""A topic's settings, compared with those of a Kafka 4.3.0 broker."""

import csv
import gc
from pathlib import Path

import pytest

from barnabas.base.settings import InvalidSetting, format_value
from barnabas.storage.config import LogConfig
from barnabas.storage.topic_settings import SETTINGS

FACTS = Path(__file__).parents[2] / "fixtures" / "kafka-4.3" / "configs.tsv"
WEEK_MS = 7 * 24 * 60 * 60 * 1000
# The recorded broker had these set explicitly.
SET_IN_THE_RUN = "(set in this run)"
DEFAULTS_FROM_THE_SOURCE = {"segment.index.bytes": "10485760", "log.index.size.max.bytes": "10485760"}


def facts(scope: str) -> dict[str, dict[str, str]]:
    with FACTS.open() as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t") if row["scope"] == scope}


def shown(config: LogConfig) -> dict[str, str]:
    """Every setting by its Kafka name, formatted as Kafka does."""
    values = {name: format_value(getattr(config, one.attribute)) for name, one in SETTINGS.items()}
    return {name: value for name, value in values.items() if value is not None}


def test_names_types_and_defaults_are_kafka_s() -> None:
    expected = {
        name: (row["type"], DEFAULTS_FROM_THE_SOURCE.get(name, row["default"]))
        for name, row in facts("topic").items()
    }

    assert {name: (one.type.label, format_value(one.default)) for name, one in SETTINGS.items()} == expected


def test_the_first_synonym_is_kafkas() -> None:
    named = {name: row["synonyms"] for name, row in facts("topic").items() if row["synonyms"]}

    assert {name: SETTINGS[name].synonyms[0].name for name in named} == named


def test_every_synonym_is_a_broker_setting_of_its_type() -> None:
    broker = facts("broker")

    for one in SETTINGS.values():
        for synonym in one.synonyms:
            assert broker[synonym.name]["type"] == synonym.type.label, synonym.name


def test_the_broker_s_defaults_are_the_topics_defaults() -> None:
    broker = {
        name: DEFAULTS_FROM_THE_SOURCE.get(name, row["default"])
        for name, row in facts("broker").items()
        if row["default"] != "null"
    }
    assert SET_IN_THE_RUN not in {
        broker[s.name] for one in SETTINGS.values() for s in one.synonyms if s.name in broker
    }

    assert LogConfig.parse({}, broker) == LogConfig()


def test_everything_is_shown_under_kafka_s_names() -> None:
    values = shown(LogConfig.parse({"cleanup.policy": "compact, delete", "retention.ms": " 5"}))

    assert values.keys() == facts("topic").keys()
    assert values["cleanup.policy"] == "compact,delete"
    assert values["retention.ms"] == "5"
    assert values["min.cleanable.dirty.ratio"] == "0.5"
    assert values["preallocate"] == "false"


def test_shown_values_are_parsed_to_the_same_values() -> None:
    config = LogConfig.parse(
        {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "preallocate": "true"}
    )

    assert LogConfig.parse(shown(config)) is config


def test_equal_configs_are_one_object() -> None:
    first = LogConfig.parse({"retention.ms": "77"})

    assert LogConfig.parse({"retention.ms": " 77"}) is first
    assert LogConfig.parse({}, {"log.retention.ms": "77"}) is first
    assert LogConfig.parse({"retention.ms": "78"}) is not first


def test_an_unreferenced_config_is_not_kept() -> None:
    from barnabas.storage.config import _shared

    gc.collect()
    before = len(_shared)

    configs = [LogConfig.parse({"retention.ms": str(9_000_000 + number)}) for number in range(50)]
    assert len(_shared) == before + 50
    del configs
    gc.collect()

    assert len(_shared) == before


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-7"}, -1),
        ({"log.retention.ms": "-1"}, -1),
        ({"retention.ms": "4"}, WEEK_MS),
    ],
)
def test_the_broker_s_finest_unit_counts(broker: dict[str, str], retention_ms: int) -> None:
    assert LogConfig.parse({}, broker).retention_ms == retention_ms


def test_rolling_and_flushing_have_two_names_too() -> None:
    coarse = LogConfig.parse(
        {}, {"log.roll.hours": "1", "log.roll.jitter.hours": "2", "log.flush.scheduler.interval.ms": "3"}
    )
    fine = LogConfig.parse({}, {"log.roll.ms": "4", "log.roll.hours": "1", "log.flush.interval.ms": "5"})

    assert (coarse.segment_ms, coarse.segment_jitter_ms, coarse.flush_ms) == (3_600_000, 7_200_000, 3)
    assert (fine.segment_ms, fine.flush_ms) == (4, 5)


def test_a_topic_s_own_value_counts_more_than_the_broker_s() -> None:
    assert (
        LogConfig.parse({"segment.bytes": "2000000"}, {"log.segment.bytes": "3000000"}).segment_bytes
        == 2_000_000
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", "Delete"),
        ("cleanup.policy", "delete,"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.lz4.level", "18"),
        ("compression.type", "none"),
        ("compression.zstd.level", "23"),
        ("delete.retention.ms", "-1"),
        ("flush.messages", "0"),
        ("follower.replication.throttled.replicas", "1:2:3"),
        ("follower.replication.throttled.replicas", "*,1:2"),
        ("index.interval.bytes", "-1"),
        ("local.retention.ms", "-3"),
        ("max.compaction.lag.ms", "0"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", "2147483648"),
        ("message.timestamp.type", "createtime"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.insync.replicas", "0"),
        ("preallocate", "1"),
        ("retention.ms", "-2"),
        ("retention.ms", "9223372036854775808"),
        ("segment.bytes", "1048575"),
        ("segment.index.bytes", "3"),
        ("segment.ms", "0"),
        ("remote.storage.enable", "true"),
    ],
)
def test_values_that_kafka_rejects_are_rejected(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        LogConfig.parse({name: value})

    assert str(raised.value).startswith(f"{name}={value}: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ""),
        ("compression.gzip.level", "-1"),
        ("compression.zstd.level", "-131072"),
        ("follower.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1, 2:3"),
        ("max.message.bytes", "0"),
        ("retention.bytes", "-5"),
        ("retention.ms", "0"),
        ("segment.bytes", "1048576"),
        ("segment.index.bytes", "4"),
    ],
)
def test_extreme_values_that_kafka_accepts_are_accepted(name: str, value: str) -> None:
    assert shown(LogConfig.parse({name: value}))[name] == value.replace(" ", "")


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_a_broker_cannot_keep_records_for_no_time_at_all(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{name}=0: must be -1 or at least 1"):
        LogConfig.parse({}, {name: "0"})


def test_the_smallest_compaction_lag_cannot_be_above_the_largest() -> None:
    with pytest.raises(
        InvalidSetting, match=r"min\.compaction\.lag\.ms=6: is above max\.compaction\.lag\.ms=5"
    ):
        LogConfig.parse({"min.compaction.lag.ms": "6"}, {"log.cleaner.max.compaction.lag.ms": "5"})
    assert LogConfig.parse({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}).compacts is False


def test_a_compacted_topic_rolls_its_segments_in_time_for_compaction() -> None:
    lag = {"max.compaction.lag.ms": "1000"}

    assert LogConfig.parse({**lag, "cleanup.policy": "compact"}).max_segment_ms == 1000
    assert LogConfig.parse(lag).max_segment_ms == WEEK_MS
    assert LogConfig.parse({"cleanup.policy": "compact"}).max_segment_ms == WEEK_MS


def test_policies_and_times_are_properties() -> None:
    both = LogConfig.parse({"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime"})

    assert (both.compacts, both.deletes, both.log_append_time) == (True, True, True)
    assert (LogConfig().compacts, LogConfig().deletes, LogConfig().log_append_time) == (False, True, False)
    neither = LogConfig.parse({"cleanup.policy": ""})
    assert (neither.compacts, neither.deletes) == (False, False)


def test_every_setting_is_explained_in_a_line() -> None:
    assert all(
        one.doc.endswith(".") and "\n" not in one.doc and len(one.doc) < 120 for one in SETTINGS.values()
    )
