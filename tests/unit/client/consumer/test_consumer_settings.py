"""Consumer settings: Kafka's defaults, invalid values, and auto.offset.reset."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.client.consumer.settings import EARLIEST, LATEST, ConsumerSettings, duration_ms
from barnabas.client.settings import parse_settings_of


def parsed(**named: object) -> ConsumerSettings:
    return parse_settings_of(ConsumerSettings, {"bootstrap.servers": "localhost:9092"}, named)


def test_the_defaults_are_kafkas() -> None:
    settings = parsed()

    assert (settings.fetch_min_bytes, settings.fetch_max_bytes, settings.fetch_max_wait_ms) == (
        1,
        52428800,
        500,
    )
    assert (settings.max_partition_fetch_bytes, settings.max_poll_records) == (1048576, 500)
    assert (settings.isolation_level, settings.auto_offset_reset) == ("read_uncommitted", "latest")
    assert (settings.check_crcs, settings.client_rack, settings.enable_auto_commit) == (True, "", True)
    assert (settings.queued_max_bytes, settings.enable_partition_eof) == (64 << 20, False)


@pytest.mark.parametrize(
    ("text", "to"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("none", None),
        ("by_duration:PT1H", 6_400_000),
        ("by_duration:P1D", 0),
        ("by_duration:PT0S", 10_000_000),
    ],
)
def test_auto_offset_reset_values(text: str, to: int | None) -> None:
    assert parsed(auto_offset_reset=text).reset_to(10_000_000) == to


@pytest.mark.parametrize(
    "text", ["smallest", "by_duration", "by_duration:", "by_duration:PT-1H", "by_duration:1H"]
)
def test_invalid_auto_offset_reset_values(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"earliest, latest, none or by_duration"):
        parsed(auto_offset_reset=text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt15m", 900_000),
        ("PT0.001S", 1),
        ("PT1,25S", 1_250),
        ("PT0.0009S", 0),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("P1M", None),
        ("PT1H1H", None),
        ("PT1.5H", None),
        ("-PT1H", None),
        ("PT" + "9" * 40 + "S", None),
    ],
)
def test_durations_are_read_as_java_does(text: str, ms: int | None) -> None:
    assert duration_ms(text) == ms
