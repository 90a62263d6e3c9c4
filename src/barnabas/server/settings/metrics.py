"""Metrics: of the broker, and those that clients push to it."""

from typing import Final

from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    int32,
    int64,
    string,
    strings,
    unsupported,
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        unsupported("it belongs to Kafka's Java metrics, which this broker does not have"),
        int32("kafka.metrics.polling.interval.secs", 10, "How often reporters are called."),
        strings("kafka.metrics.reporters", (), "Classes that report Kafka's older metrics."),
        strings(
            "metric.reporters",
            ("org.apache.kafka.common.metrics.JmxReporter",),
            "Classes that report metrics.",
            change=Change.CLUSTER_WIDE,
        ),
        int32("metrics.num.samples", 2, "How many samples a metric keeps."),
        string("metrics.recording.level", "INFO", "How detailed metrics are: INFO, DEBUG or TRACE."),
        int64("metrics.sample.window.ms", 30000, "How long a sample lasts."),
    ),
    *all_with(
        unsupported("metrics of clients are not collected yet"),
        int32("telemetry.max.bytes", 1048576, "How many bytes of metrics a client may push at once."),
    ),
)
