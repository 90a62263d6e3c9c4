"""The options of the sink."""

import pytest

from barnabas.spark.options.sink import Guarantee, Scope, SinkOptions, sink_options
from barnabas.spark.options.values import BadOption, Values

BROKERS = {"kafka.bootstrap.servers": "localhost:9092"}
EXACT = {"deliveryGuarantee": "exactly-once"}


def options(*, overwrite: bool = False, **given: str) -> SinkOptions:
    return sink_options(Values({**BROKERS, **given}, "sink"), overwrite=overwrite, directory="/home/me")


def test_the_default_is_at_least_once_with_a_topic_column() -> None:
    assert options() == SinkOptions(
        topic=None,
        guarantee=Guarantee.AT_LEAST_ONCE,
        scope=Scope.TASK,
        id_prefix="barnabas-spark-sink",
        checkpoint=None,
        producer={"bootstrap.servers": "localhost:9092"},
        connect_ms=20_000,
    )


def test_exactly_once_has_a_long_default_timeout() -> None:
    assert options(**EXACT).timeout_ms == 900_000
    assert options(**EXACT, **{"kafka.transaction.timeout.ms": "5000"}).timeout_ms == 5000


def test_names_and_words_may_be_in_any_case() -> None:
    found = options(DELIVERYGUARANTEE="Exactly-Once", TransactionScope="BATCH", Topic="orders")

    assert (found.guarantee, found.scope, found.topic) == (Guarantee.EXACTLY_ONCE, Scope.BATCH, "orders")


def test_different_checkpoints_have_different_names() -> None:
    first, again, other = (
        options(checkpointLocation=path).checkpoint for path in ("/data/a", "/data/a", "/data/b")
    )

    assert first == again
    assert first != other


@pytest.mark.parametrize("path", ["a", "./a", "/home/me/a", "file:/home/me/a"])
def test_a_relative_checkpoint_is_in_the_working_directory(path: str) -> None:
    assert options(checkpointLocation=path).checkpoint == options(checkpointLocation="/home/me/a").checkpoint


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"deliveryGuarantee": "twice"}, "deliveryGuarantee"),
        ({"transactionScope": "batch"}, "transactionScope"),
        ({**EXACT, "transactionScope": "query"}, "transactionScope"),
        ({"topic": " "}, "topic: it is empty"),
        ({"includeHeaders": "perhaps"}, "includeHeaders"),
        ({"subscribe": "orders"}, "subscribe"),
        ({"kafka.transactional.id": "mine"}, "kafka.transactional.id"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer"),
        ({**EXACT, "kafka.acks": "1"}, "kafka.acks"),
        ({**EXACT, "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence"),
        ({"kafka.ssl.truststore.location": "x"}, "ssl.truststore.location"),
        ({"kafka.linger.ms": "soon"}, "linger.ms"),
    ],
)
def test_invalid_options_are_rejected_by_name(given: dict[str, str], name: str) -> None:
    with pytest.raises(BadOption, match=name.replace(".", r"\.")):
        options(**given)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("topics", "option topics: no such sink option; did you mean topic?"),
        ("deliveryguarante", "option deliveryguarante: .*; did you mean deliveryGuarantee?"),
        ("kafka.lingerms", "option kafka.lingerms: no such producer setting; did you mean kafka.linger.ms?"),
        ("compression.type", "option compression.type: .*; did you mean kafka.compression.type?"),
        ("subscribe", "option subscribe: no such sink option"),
    ],
)
def test_the_nearest_option_is_named(name: str, why: str) -> None:
    with pytest.raises(BadOption, match="^" + why.replace("?", r"\?") + "$"):
        options(**{name: "1"})


@pytest.mark.parametrize("text", ["true", "FALSE"])
def test_include_headers_is_accepted_as_in_sparks_own_sink(text: str) -> None:
    """They are written with either value, as there."""
    assert options(includeHeaders=text) == options()


def test_nothing_is_overwritten() -> None:
    with pytest.raises(BadOption, match="appended to"):
        options(overwrite=True)


def test_brokers_must_be_named() -> None:
    with pytest.raises(BadOption, match=r"kafka\.bootstrap\.servers"):
        sink_options(Values({}), overwrite=False, directory="/")
