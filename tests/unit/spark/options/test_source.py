"""The options of the source, and what is rejected before anything is read."""

from collections.abc import Callable

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.spark.options.positions import AtOffsets, AtTime, AtTimes, Place, moves, option_of
from barnabas.spark.options.source import (
    Assigned,
    Pattern,
    SourceOptions,
    Topics,
    batch_options,
    stream_options,
)
from barnabas.spark.options.values import BadOption, Values

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
Read = Callable[[Values], SourceOptions]
BOTH = pytest.mark.parametrize("read", [batch_options, stream_options])


def values(**given: str) -> Values:
    """Keywords are options; what has dots comes from `more`."""
    return Values({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", **given})


def more(given: dict[str, str], *, without: str = "") -> Values:
    options = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", **given}
    options.pop(without, None)
    return Values(options)


def test_a_batch_reads_everything_and_a_stream_new_records() -> None:
    batch, stream = batch_options(values()), stream_options(values())

    assert (batch.start, batch.end) == (Place.EARLIEST, Place.LATEST)
    assert stream.start is Place.LATEST


def test_the_defaults_are_those_of_spark() -> None:
    assert stream_options(values()) == SourceOptions(
        choice=Topics(("orders",)),
        start=Place.LATEST,
        end=Place.LATEST,
        fails_on_loss=True,
        includes_headers=False,
        offsets_max=None,
        offsets_min=None,
        wait_max_ms=900_000,
        min_partitions=None,
        records_max=None,
        group_id=None,
        group_id_prefix="barnabas-spark-source",
        commits_progress=True,
        pushes_filters=False,
        retries=3,
        retry_after_ms=1000,
        connect_ms=20_000,
        poll_timeout_ms=120_000,
        fetches=None,
        client={"bootstrap.servers": "localhost:9092"},
        ignored=(),
    )


@BOTH
def test_names_may_be_in_any_case(read: Read) -> None:
    found = read(
        more(
            {
                "FAILONDATALOSS": "FALSE",
                "includeheaders": "True",
                "MinPartitions": "7",
                "KAFKA.Isolation.Level": "read_committed",
                "Kafka.group.ID": "g",
            }
        )
    )

    assert (found.fails_on_loss, found.includes_headers, found.min_partitions) == (False, True, 7)
    assert found.client["isolation.level"] == "read_committed"
    assert (found.group_id, "group.id" in found.client) == ("g", False)


# Which topics


@BOTH
def test_topics_are_chosen_in_one_of_three_ways(read: Read) -> None:
    assert read(values(subscribe=" a, b ,,a ")).choice == Topics(("a", "b"))
    assert read(more({"assign": '{"orders":[1,0]}'}, without="subscribe")).choice == Assigned((B, A))
    assert read(more({"subscribePattern": "or.*"}, without="subscribe")).choice == Pattern("or.*")


@BOTH
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"subscribe": " , "}, "subscribe"),
        ({"assign": "{}"}, "assign"),
        ({"assign": "orders"}, "assign"),
        ({"subscribePattern": " "}, "subscribePattern"),
        ({"subscribePattern": "or("}, "subscribePattern"),
        ({"subscribePattern": "or.*", "subscribe": "orders"}, "assign | subscribe | subscribePattern"),
        ({}, "assign | subscribe | subscribePattern"),
    ],
)
def test_an_invalid_choice_of_topics_is_rejected(read: Read, given: dict[str, str], name: str) -> None:
    with pytest.raises(BadOption) as refused:
        read(Values({"kafka.bootstrap.servers": "localhost:9092", **given}))

    assert refused.value.name == name


# Where from, where to


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ({"startingOffsets": "Earliest"}, Place.EARLIEST),
        ({"startingOffsets": '{"orders":{"0":5,"1":-2}}'}, AtOffsets({A: 5, B: -2})),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1000}}'}, AtTimes({A: 1000}, else_latest=False)),
        ({"startingTimestamp": "1000"}, AtTime(1000, else_latest=False)),
        (
            {"startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "LATEST"},
            AtTime(1000, else_latest=True),
        ),
        # -2 and -1 in place of timestamps.
        ({"startingTimestamp": "-1"}, AtTime(-1, else_latest=False)),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":-2}}'}, AtTimes({A: -2}, else_latest=False)),
        # Precedence of several forms.
        (
            {"startingTimestamp": "7", "startingOffsetsByTimestamp": "{}", "startingOffsets": "latest"},
            AtTime(7, else_latest=False),
        ),
        (
            {"startingOffsetsByTimestamp": '{"orders":{"0":9}}', "startingOffsets": "latest"},
            AtTimes({A: 9}, else_latest=False),
        ),
    ],
)
def test_a_start_can_have_every_form(given: dict[str, str], start: object) -> None:
    assert batch_options(more(given)).start == start
    assert stream_options(more(given)).start == start


def test_a_stream_can_start_where_its_group_is() -> None:
    found = stream_options(more({"startingOffsets": "group", "kafka.group.id": "g"}))

    assert (found.start, found.group_id) == (Place.GROUP, "g")


@pytest.mark.parametrize(
    ("given", "end"),
    [
        ({"endingOffsets": "latest"}, Place.LATEST),
        ({"endingOffsets": '{"orders":{"0":5,"1":-1}}'}, AtOffsets({A: 5, B: -1})),
        ({"endingOffsetsByTimestamp": '{"orders":{"0":1000}}'}, AtTimes({A: 1000}, else_latest=True)),
        ({"endingTimestamp": "1000"}, AtTime(1000, else_latest=True)),
        ({"endingTimestamp": "-2"}, AtTime(-2, else_latest=True)),
        ({"endingOffsetsByTimestamp": '{"orders":{"0":-1}}'}, AtTimes({A: -1}, else_latest=True)),
    ],
)
def test_an_end_can_have_every_form(given: dict[str, str], end: object) -> None:
    assert batch_options(more(given)).end == end


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"orders":{"0":-1}}'},
        {"startingOffsets": "{}"},
        {"startingOffsets": "newest"},
        {"startingOffsets": "group"},
        {"startingTimestamp": "-3"},
        {"startingTimestamp": "yesterday"},
        {"startingTimestamp": "1_000"},
        {"startingOffsetsByTimestamp": '{"orders":{"0":-3}}'},
        {"endingTimestamp": "-3"},
        {"startingOffsetsByTimestampStrategy": "earliest"},
        {"endingOffsets": "earliest"},
        {"endingOffsets": "group"},
        {"endingOffsets": '{"orders":{"0":-2}}'},
        {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"0":4}}'},
        {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"1":9}}'},
        {
            "startingOffsetsByTimestamp": '{"orders":{"0":5}}',
            "endingOffsetsByTimestamp": '{"orders":{"0":4}}',
        },
    ],
    ids=str,
)
def test_a_batch_that_cannot_be_read_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadOption):
        batch_options(more(given))


def test_offsets_that_end_where_they_start_are_an_empty_batch() -> None:
    same = '{"orders":{"0":5}}'

    assert batch_options(values(startingOffsets=same, endingOffsets=same)).end == AtOffsets({A: 5})


@pytest.mark.parametrize("name", ["endingOffsets", "endingoffsetsbytimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(BadOption, match="no end"):
        stream_options(more({name: "1000"}))


# How much


def test_the_size_of_a_batch_can_be_limited() -> None:
    found = stream_options(
        values(
            maxOffsetsPerTrigger="1000",
            minOffsetsPerTrigger="10",
            maxTriggerDelay="2m",
            maxRecordsPerPartition="50",
        )
    )

    assert (found.offsets_max, found.offsets_min, found.wait_max_ms, found.records_max) == (
        1000,
        10,
        120_000,
        50,
    )


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("7", 7),
        ("7ms", 7),
        ("7 s", 7000),
        ("7m", 420_000),
        ("7min", 420_000),
        ("2h", 7_200_000),
        ("1D", 86_400_000),
    ],
)
def test_a_time_is_written_as_spark_writes_it(text: str, ms: int) -> None:
    assert stream_options(values(maxTriggerDelay=text)).wait_max_ms == ms


@pytest.mark.parametrize(
    "given",
    [
        {"maxOffsetsPerTrigger": "0"},
        {"maxOffsetsPerTrigger": "many"},
        {"maxOffsetsPerTrigger": "9223372036854775808"},
        {"minPartitions": "0"},
        {"maxRecordsPerPartition": "-1"},
        {"maxTriggerDelay": "1 fortnight"},
        {"maxTriggerDelay": "-1s"},
        {"maxTriggerDelay": "s"},
        {"failOnDataLoss": "maybe"},
        {"minPartitions": "2147483648"},
        {"fetchOffset.numRetries": "0"},
        {"fetchesInFlight": "0"},
        {"fetchesInFlight": "17"},
        {"fetchesInFlight": "auto"},
        {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "9"},
    ],
    ids=str,
)
def test_an_invalid_limit_is_rejected(given: dict[str, str]) -> None:
    with pytest.raises(BadOption):
        stream_options(more(given))


@BOTH
def test_fetches_in_flight_limits_the_fetches_of_a_task(read: Read) -> None:
    assert read(values(fetchesInFlight="4")).fetches == 4


def test_a_batch_ignores_the_limits_of_streams_and_lists_them() -> None:
    found = batch_options(values(maxOffsetsPerTrigger="1000", maxTriggerDelay="1s"))

    assert found.offsets_max is None
    assert found.ignored == ("maxOffsetsPerTrigger", "maxTriggerDelay")


# What is refused


@BOTH
@pytest.mark.parametrize(
    "name",
    [
        "kafka.auto.offset.reset",
        "kafka.enable.auto.commit",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.interceptor.classes",
        "kafka.sasl.mechanism",
        "kafka.ssl.truststore.location",
        "kafka.no.such.setting",
        "kafkaesque",
        "startingOffset",
    ],
)
def test_unsupported_options_are_rejected_by_name(read: Read, name: str) -> None:
    with pytest.raises(BadOption, match=name.removeprefix("kafka.")):
        read(more({name: "latest"}))


@BOTH
def test_an_unsupported_protocol_is_rejected_by_name(read: Read) -> None:
    with pytest.raises(BadOption, match=r"security\.protocol"):
        read(more({"kafka.security.protocol": "SASL_SSL"}))


@BOTH
@pytest.mark.parametrize(
    ("name", "why"),
    [
        # As the name arrives: Spark writes it in lower case before Python sees it.
        ("startingoffset", "option startingoffset: no such source option; did you mean startingOffsets?"),
        ("maxOffsetPerTrigger", "option maxOffsetPerTrigger: .*; did you mean maxOffsetsPerTrigger?"),
        ("isolation.level", "option isolation.level: .*; did you mean kafka.isolation.level?"),
        ("kafka.fetch.maxbytes", "option kafka.fetch.maxbytes: .*; did you mean kafka.fetch.max.bytes?"),
        ("somethingElse", "option somethingElse: no such source option"),
    ],
)
def test_the_nearest_option_is_named(read: Read, name: str, why: str) -> None:
    with pytest.raises(BadOption, match="^" + why.replace("?", r"\?") + "$"):
        read(more({name: "1"}))


@BOTH
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"subscribe": "orders"}, "kafka.bootstrap.servers: it is required"),
        ({"subscribe": "orders", "bootstrap.servers": "a:1"}, "did you mean kafka.bootstrap.servers?"),
        ({"subscribe": "orders", "kafka.bootstrap.server": "a:1"}, "did you mean kafka.bootstrap.servers?"),
        ({"subscrib": "orders", "kafka.bootstrap.servers": "a:1"}, "did you mean subscribe?"),
        ({"topicPattern": "orders", "kafka.bootstrap.servers": "a:1"}, "none is set"),
        (
            {"subscribe": "orders", "kafka.bootstrap.servers": " "},
            "kafka.bootstrap.servers: it names no broker",
        ),
        (
            {"subscribe": "orders", "kafka.bootstrap.servers": "a"},
            "kafka.bootstrap.servers: 'a' must be HOST:PORT",
        ),
    ],
    ids=str,
)
def test_a_missing_option_is_looked_for_among_misspelled_names(
    read: Read, given: dict[str, str], why: str
) -> None:
    with pytest.raises(BadOption) as refused:
        read(Values(given))

    assert why in str(refused.value)


def test_a_value_that_may_be_secret_is_not_shown() -> None:
    for name in ("kafka.ssl.keystore.password", "kafka.sasl.jaas.confg"):
        with pytest.raises(BadOption) as refused:
            batch_options(more({name: "hunter2"}))

        assert refused.value.name == name
        assert "hunter2" not in str(refused.value)


@BOTH
def test_brokers_must_be_named(read: Read) -> None:
    with pytest.raises(BadOption, match=r"kafka\.bootstrap\.servers"):
        read(more({}, without="kafka.bootstrap.servers"))


@pytest.mark.parametrize(
    ("options", "is_moving", "name"),
    [
        ({"startingOffsets": "earliest"}, False, "startingOffsets"),
        ({"startingOffsets": "latest"}, True, "startingOffsets"),
        ({"startingOffsets": "group", "kafka.group.id": "shop"}, True, "startingOffsets"),
        ({"startingOffsets": '{"orders":{"0":5,"1":-2}}'}, False, "startingOffsets"),
        ({"startingOffsets": '{"orders":{"0":5,"1":-1}}'}, True, "startingOffsets"),
        ({"startingTimestamp": "5"}, False, "startingTimestamp"),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":5}}'}, False, "startingOffsetsByTimestamp"),
        ({"startingTimestamp": "-2"}, False, "startingTimestamp"),
        ({"startingTimestamp": "-1"}, True, "startingTimestamp"),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":5,"1":-1}}'}, True, "startingOffsetsByTimestamp"),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "latest"},
            True,
            "startingTimestamp",
        ),
    ],
)
def test_a_moving_start_is_recognized_and_its_option_is_known(
    options: dict[str, str], is_moving: bool, name: str
) -> None:
    start = stream_options(more(options)).start

    assert (moves(start), option_of(start, "starting")) == (is_moving, name)
