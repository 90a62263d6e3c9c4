"""The options of the source, for batch and streaming queries, with Spark's names and defaults."""

import re
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.spark.offsets import BadOffsets, partitions_from_json
from barnabas.spark.options.client_settings import connect_ms, consumer_settings, option_names
from barnabas.spark.options.positions import Place, Position, check_batch, ending, starting
from barnabas.spark.options.values import BadOption, Values

_WAIT_MAX_MS: Final = 15 * 60_000
_RETRIES: Final = 3
_RETRY_AFTER_MS: Final = 1000
# The default of spark.network.timeout, which Spark's own source uses here.
_POLL_TIMEOUT_MS: Final = 120_000
# Each fetch has a connection and holds a response.
_FETCHES_MAX: Final = 16
_INT32_MAX: Final = (1 << 31) - 1
_GROUP_PREFIX: Final = "barnabas-spark-source"
_CHOICES: Final = ("assign", "subscribe", "subscribePattern")
# Batch queries ignore these, as in Spark's own source.
_STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")


class Assigned(NamedTuple):
    partitions: tuple[TopicPartition, ...]


class Topics(NamedTuple):
    names: tuple[str, ...]


class Pattern(NamedTuple):
    """Existing and future topics in whose name the pattern is found, also in a part, as in Spark's source."""

    text: str


Choice: TypeAlias = Assigned | Topics | Pattern


class SourceOptions(NamedTuple):
    """`end` is for batch queries, `offsets_max`, `offsets_min` and `wait_max_ms` for streams."""

    choice: Choice
    start: Position
    end: Position
    fails_on_loss: bool
    includes_headers: bool
    offsets_max: int | None
    offsets_min: int | None
    wait_max_ms: int
    min_partitions: int | None
    records_max: int | None
    # The option kafka.group.id. If None, progress of a stream is committed to a group named by the query id.
    group_id: str | None
    group_id_prefix: str
    commits_progress: bool
    # Off by default: Spark 4.3.0 returns wrong rows if a DataFrame is read with a filter and without.
    pushes_filters: bool
    retries: int
    retry_after_ms: int
    # Timeout of the driver's first contact with brokers.
    connect_ms: int
    # How long a task waits for records that should exist.
    poll_timeout_ms: int
    # Fetches in flight per task; None to choose by the latency of the brokers.
    fetches: int | None
    client: dict[str, str]
    # Options without effect, which are logged.
    ignored: tuple[str, ...]


def batch_options(given: Values) -> SourceOptions:
    ignored = tuple(name for name in _STREAM_ONLY if name in given)
    found = _options(given, start=starting(given, default=Place.EARLIEST), end=ending(given))
    check_batch(found.start, found.end)
    return found._replace(offsets_max=None, offsets_min=None, ignored=ignored)


def stream_options(given: Values) -> SourceOptions:
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if name in given:
            raise BadOption(name, "a stream has no end")
    return _options(given, start=starting(given, default=Place.LATEST), end=Place.LATEST)


def _options(given: Values, *, start: Position, end: Position) -> SourceOptions:
    client = consumer_settings(given)
    wait_max_ms = given.duration_ms("maxTriggerDelay")
    retries = given.number("fetchOffset.numRetries", least=1, most=_INT32_MAX)
    retry_after_ms = given.number("fetchOffset.retryIntervalMs")
    poll_timeout_ms = given.number("kafkaConsumer.pollTimeoutMs", least=1)
    options = SourceOptions(
        choice=_choice(given),
        start=start,
        end=end,
        fails_on_loss=given.flag("failOnDataLoss", True),
        includes_headers=given.flag("includeHeaders", False),
        offsets_max=given.number("maxOffsetsPerTrigger", least=1),
        offsets_min=given.number("minOffsetsPerTrigger", least=1),
        wait_max_ms=_WAIT_MAX_MS if wait_max_ms is None else wait_max_ms,
        min_partitions=given.number("minPartitions", least=1, most=_INT32_MAX),
        records_max=given.number("maxRecordsPerPartition", least=1),
        group_id=client.pop("group.id", None),
        group_id_prefix=given.text("groupIdPrefix") or _GROUP_PREFIX,
        commits_progress=given.flag("commitProgress", True),
        pushes_filters=given.flag("filterPushdown", False),
        retries=_RETRIES if retries is None else retries,
        retry_after_ms=_RETRY_AFTER_MS if retry_after_ms is None else retry_after_ms,
        connect_ms=connect_ms(given),
        poll_timeout_ms=_POLL_TIMEOUT_MS if poll_timeout_ms is None else poll_timeout_ms,
        fetches=given.number("fetchesInFlight", least=1, most=_FETCHES_MAX),
        client=client,
        ignored=(),
    )
    given.refuse_others(option_names(ConsumerSettings))
    _check_together(options)
    return options


def _check_together(options: SourceOptions) -> None:
    least, most = options.offsets_min, options.offsets_max
    if least is not None and most is not None and least > most:
        raise BadOption("minOffsetsPerTrigger", f"{least} exceeds maxOffsetsPerTrigger ({most})")
    if options.start is Place.GROUP and options.group_id is None:
        raise BadOption("startingOffsets", "group requires kafka.group.id")


def _choice(given: Values) -> Choice:
    names = [name for name in _CHOICES if given.text(name) is not None]
    if not names:
        given.refuse_misspelled(*_CHOICES)
    if len(names) != 1:
        which = "none is" if not names else f"{' and '.join(names)} are"
        raise BadOption(" | ".join(_CHOICES), f"exactly one of them is required, but {which} set")
    text = given.text(names[0]) or ""
    if names[0] == "assign":
        try:
            partitions = partitions_from_json(text)
        except BadOffsets as wrong:
            raise BadOption("assign", str(wrong)) from None
        if not partitions:
            raise BadOption("assign", "it names no partition")
        return Assigned(tuple(partitions))
    if names[0] == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not topics:
            raise BadOption("subscribe", "it names no topic")
        return Topics(topics)
    if not text:
        raise BadOption("subscribePattern", "it is empty")
    try:
        re.compile(text)
    except re.error as wrong:
        raise BadOption("subscribePattern", f"{text!r} is not a valid regular expression: {wrong}") from None
    return Pattern(text)
