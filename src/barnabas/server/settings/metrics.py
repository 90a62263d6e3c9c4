"""Metrics of the broker, metrics that clients push to it, and quotas, which are measured in the same way."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.settings import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    int32,
    int64,
    java_class,
    string,
    strings,
)
from barnabas.server.settings.rules import one_of_any_case

_POSITIVE: Final = at_least(1)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        unsupported("it names Java classes, which this broker cannot load"),
        strings("kafka.metrics.reporters", (), "Reporter classes of Kafka's older metrics."),
        strings(
            "metric.reporters",
            ("org.apache.kafka.common.metrics.JmxReporter",),
            "Metrics reporter classes.",
            change=Change.CLUSTER_WIDE,
        ),
    ),
    *all_with(
        nothing_to_tune("it tunes Kafka's Java metrics; this broker exports Prometheus metrics"),
        int32(
            "kafka.metrics.polling.interval.secs",
            10,
            "Polling interval of the metrics reporters.",
            rule=_POSITIVE,
        ),
        int32("metrics.num.samples", 2, "Number of samples kept per metric.", rule=_POSITIVE),
        string(
            "metrics.recording.level",
            "INFO",
            "Recording level of metrics: INFO, DEBUG or TRACE.",
            rule=one_of_any_case("INFO", "DEBUG", "TRACE"),
        ),
        int64("metrics.sample.window.ms", 30000, "Time window of a metrics sample.", rule=_POSITIVE),
    ),
    *all_with(
        nothing_to_tune("the broker does not support client metrics"),
        int32(
            "telemetry.max.bytes",
            1048576,
            "Maximum size of the metrics that a client pushes at once.",
            rule=_POSITIVE,
        ),
    ),
)


def _windows(prefix: str, what: str) -> tuple[ServerSetting, ServerSetting]:
    return (
        int32(
            f"{prefix}quota.window.num", 11, f"Number of windows kept to measure {what}.", rule=at_least(1)
        ),
        int32(
            f"{prefix}quota.window.size.seconds",
            1,
            f"Length of a window that measures {what}.",
            rule=at_least(1),
        ),
    )


QUOTAS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        nothing_to_tune("the broker does not support quotas"),
        *_windows("", "client quotas"),
        *_windows("controller.", "the controller mutation quota"),
        *_windows("replication.", "throttled replication"),
        *_windows("alter.log.dirs.replication.", "replication between log directories"),
    ),
    *all_with(
        unsupported("it names a Java class, which this broker cannot load"),
        java_class("client.quota.callback.class", None, "Class that determines the quota of a client."),
    ),
)
