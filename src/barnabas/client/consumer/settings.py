"""Consumer settings with Kafka's names and defaults; two are librdkafka's.

Those of a member of a group are in client/group/settings.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.base.setting_rules import Rule, Value, at_least, between, one_of
from barnabas.base.settings import SettingType, setting
from barnabas.client.group.settings import GroupSettings, check_together
from barnabas.client.settings import BOOLEAN, INT, STRING, parse_settings_of

# Special ListOffsets timestamps for the two ends of a log.
EARLIEST: Final = -2
LATEST: Final = -1

_BY_DURATION: Final = "by_duration:"
# ISO 8601 as parsed by Java's Duration, without negative values.
_DURATION: Final = re.compile(
    r"P(?:(?P<days>[0-9]{1,9})D)?"
    r"(?P<time>T(?:(?P<hours>[0-9]{1,11})H)?(?:(?P<minutes>[0-9]{1,12})M)?"
    r"(?:(?P<seconds>[0-9]{1,15})(?:[.,](?P<part>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_KIBIBYTES_MAX: Final = 2_097_151


def duration_ms(text: str) -> int | None:
    """Return the milliseconds of a duration such as P1DT2H3M4.5S; None if it is invalid."""
    found = _DURATION.fullmatch(text)
    if found is None or text.upper() in ("P", "PT") or (found["time"] or "").upper() == "T":
        return None
    days, hours, minutes, seconds = (
        int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds")
    )
    part_ms = int((found["part"] or "").ljust(3, "0")[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + part_ms


def _is_reset(value: Value) -> bool:
    if not isinstance(value, str):
        return False
    return value in ("earliest", "latest", "none") or (
        value.startswith(_BY_DURATION) and duration_ms(value.removeprefix(_BY_DURATION)) is not None
    )


_RESET_RULE: Final = Rule("earliest, latest, none or by_duration:P1DT2H3M4S", _is_reset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(GroupSettings):
    fetch_min_bytes: int = setting(
        "fetch.min.bytes", INT, 1, "bytes that a broker waits for before it answers a fetch", rule=at_least(0)
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        INT,
        52_428_800,
        "most bytes of one fetch response, unless a single batch is larger",
        rule=at_least(0),
    )
    fetch_max_wait_ms: int = setting(
        "fetch.max.wait.ms",
        INT,
        500,
        "longest time that a broker waits for fetch.min.bytes",
        rule=at_least(0),
    )
    max_partition_fetch_bytes: int = setting(
        "max.partition.fetch.bytes",
        INT,
        1_048_576,
        "most bytes of one partition in a fetch response, unless a single batch is larger",
        rule=at_least(0),
    )
    max_poll_records: int = setting(
        "max.poll.records", INT, 500, "most messages of one batch()", rule=at_least(1)
    )
    isolation_level: str = setting(
        "isolation.level",
        STRING,
        "read_uncommitted",
        "read records of open and aborted transactions, or only committed ones",
        rule=one_of("read_committed", "read_uncommitted"),
    )
    auto_offset_reset: str = setting(
        "auto.offset.reset",
        STRING,
        "latest",
        "where to start without a committed offset, or when an offset is out of range",
        rule=_RESET_RULE,
    )
    check_crcs: bool = setting("check.crcs", BOOLEAN, True, "check the CRC of each batch")
    client_rack: str = setting(
        "client.rack", STRING, "", "rack of this client, for fetching from a replica nearby"
    )
    allow_auto_create_topics: bool = setting(
        "allow.auto.create.topics",
        BOOLEAN,
        True,
        "let a request for a missing topic create it",
    )
    enable_partition_eof: bool = setting(
        "enable.partition.eof",
        BOOLEAN,
        False,
        "yield an EndOfPartition at the end of a partition (a setting of librdkafka)",
    )
    queued_max_messages_kbytes: int = setting(
        "queued.max.messages.kbytes",
        SettingType.INT,
        65_536,
        "how much to fetch ahead of the reader, in KiB (a setting of librdkafka)",
        rule=between(1, _KIBIBYTES_MAX),
    )

    @property
    def read_committed(self) -> bool:
        return self.isolation_level == "read_committed"

    @property
    def queued_max_bytes(self) -> int:
        return self.queued_max_messages_kbytes * 1024

    def reset_to(self, now_ms: int) -> int | None:
        """Return the ListOffsets timestamp for auto.offset.reset; None for `none`."""
        match self.auto_offset_reset:
            case "none":
                return None
            case "earliest":
                return EARLIEST
            case "latest":
                return LATEST
            case text:
                back_ms = duration_ms(text.removeprefix(_BY_DURATION))
                assert back_ms is not None, "the setting's rule accepts no other text"
                # Negative timestamps have special meanings in ListOffsets.
                return max(0, now_ms - back_ms)


def parse_consumer_settings(
    given: Mapping[str, object] | None, named: Mapping[str, object]
) -> ConsumerSettings:
    """Parse settings like parse_settings_of(); InvalidSetting also for conflicting ones."""
    settings = parse_settings_of(ConsumerSettings, given, named)
    names = {name for name, value in (given or {}).items() if value is not None}
    names |= {name.replace("_", ".") for name, value in named.items() if value is not None}
    check_together(settings, names)
    return settings
