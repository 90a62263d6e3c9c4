"""The tables of options in the guide to Spark are those that the code knows, with its defaults."""

import re

import pytest

from barnabas.spark.options.sink import SinkOptions, sink_options
from barnabas.spark.options.source import SourceOptions, batch_options, stream_options
from barnabas.spark.options.values import Values
from support.docs.pages import DOCS, prose
from support.spark.options import SERVERS, sink_options_asked, source_options_asked

GUIDE = DOCS / "guides" / "spark.md"


def tables() -> list[dict[str, str]]:
    """Of each table of options: the first name of a row or all of them, and what stands under default."""
    found: list[dict[str, str]] = []
    is_inside = False
    for _, line in prose(GUIDE):
        if line.startswith("| option | default |"):
            found.append({})
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and line.startswith("| `"):
            names, default = line.split("|")[1:3]
            listed = re.findall(r"`([^`]+)`", names)
            defaults = [part.strip() for part in default.split(", ")]
            if len(defaults) != len(listed):
                defaults = [default.strip()] * len(listed)
            found[-1] |= dict(zip(listed, defaults, strict=True))
    return found


SOURCE, SINK = tables()


def without_client_settings(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith("kafka.")}


def test_the_tables_name_every_option_and_no_other() -> None:
    assert without_client_settings(set(SOURCE)) == source_options_asked()
    assert without_client_settings(set(SINK)) == sink_options_asked()


def source() -> tuple[SourceOptions, SourceOptions]:
    given = {**SERVERS, "subscribe": "any"}
    return batch_options(Values(given)), stream_options(Values(given))


def shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case int():
            return str(value)
        case _:
            return f"`{value}`"


DEFAULTS = {
    "failOnDataLoss": "fails_on_loss",
    "includeHeaders": "includes_headers",
    "maxOffsetsPerTrigger": "offsets_max",
    "minPartitions": "min_partitions",
    "maxRecordsPerPartition": "records_max",
    "filterPushdown": "pushes_filters",
    "groupIdPrefix": "group_id_prefix",
    "commitProgress": "commits_progress",
    "fetchOffset.numRetries": "retries",
    "fetchOffset.retryIntervalMs": "retry_after_ms",
    "kafkaConsumer.pollTimeoutMs": "poll_timeout_ms",
}


@pytest.mark.parametrize("option", DEFAULTS)
def test_a_default_of_the_source_is_the_one_of_the_guide(option: str) -> None:
    batch, stream = source()

    assert getattr(batch, DEFAULTS[option]) == getattr(stream, DEFAULTS[option])
    assert SOURCE[option] == shown(getattr(stream, DEFAULTS[option]))


def test_defaults_that_are_written_in_words() -> None:
    batch, stream = source()

    assert SOURCE["startingOffsets"] == f"stream `{stream.start.value}`, batch `{batch.start.value}`"
    assert SOURCE["endingOffsets"] == f"`{batch.end.value}`"
    assert SOURCE["maxTriggerDelay"] == f"`{stream.wait_max_ms // 60_000}m`"
    assert SOURCE["connectTimeout"] == f"`{stream.connect_ms // 1000}s`"
    assert stream.fetches is None
    assert stream.client.get("isolation.level") is None
    assert SOURCE["kafka.isolation.level"] == "`read_uncommitted`"


def test_defaults_of_the_sink() -> None:
    options: SinkOptions = sink_options(Values(SERVERS), overwrite=False, directory="/")

    assert SINK["topic"] == shown(options.topic)
    assert SINK["deliveryGuarantee"] == shown(options.guarantee.value)
    assert SINK["transactionScope"] == shown(options.scope.value)
    assert SINK["transactionalIdPrefix"] == shown(options.id_prefix)
    assert SINK["connectTimeout"] == f"`{options.connect_ms // 1000}s`"
