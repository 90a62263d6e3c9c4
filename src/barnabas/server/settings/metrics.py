"""Metrics: of the broker, and those that clients push to it."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.setting_support import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    int32,
    int64,
    string,
    strings,
)
from barnabas.server.settings.rules import one_of_any_case

_POSITIVE: Final = at_least(1)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        unsupported("it names Java classes, which this broker cannot load"),
        strings("kafka.metrics.reporters", (), "Classes that report Kafka's older metrics."),
        strings(
            "metric.reporters",
            ("org.apache.kafka.common.metrics.JmxReporter",),
            "Classes that report metrics.",
            change=Change.CLUSTER_WIDE,
        ),
    ),
    *all_with(
        nothing_to_tune("it tunes Kafka's Java metrics; this broker has metrics for Prometheus"),
        int32("kafka.metrics.polling.interval.secs", 10, "How often reporters are called.", rule=_POSITIVE),
        int32("metrics.num.samples", 2, "How many samples a metric keeps.", rule=_POSITIVE),
        string(
            "metrics.recording.level",
            "INFO",
            "How detailed metrics are: INFO, DEBUG or TRACE.",
            rule=one_of_any_case("INFO", "DEBUG", "TRACE"),
        ),
        int64("metrics.sample.window.ms", 30000, "How long a sample lasts.", rule=_POSITIVE),
    ),
    *all_with(
        nothing_to_tune("the broker refuses metrics of clients"),
        int32(
            "telemetry.max.bytes",
            1048576,
            "How many bytes of metrics a client may push at once.",
            rule=_POSITIVE,
        ),
    ),
)
