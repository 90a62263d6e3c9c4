"""What a user may say to the sink, with Spark's names where Spark has it."""

from enum import Enum
from typing import Final, NamedTuple, TypeVar

from barnabas.client.producer.settings import ProducerSettings
from barnabas.spark.options.checkpoint import name_of_checkpoint
from barnabas.spark.options.client_settings import option_names, producer_options
from barnabas.spark.options.contact import connect_ms
from barnabas.spark.options.errors import BadOption
from barnabas.spark.options.values import Values

E = TypeVar("E", bound=Enum)

_ID_PREFIX: Final = "barnabas-spark-sink"
# The most that a broker allows unless it is told otherwise: a micro-batch has to end before.
_TRANSACTION_TIMEOUT_MS: Final = "900000"
# Of Spark itself, which hands them to every sink.
_OF_SPARK: Final = ("checkpointLocation", "queryName", "path")


class Guarantee(Enum):
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


class Scope(Enum):
    """What is seen together: what one task wrote, or a whole micro-batch."""

    TASK = "task"
    BATCH = "batch"


class SinkOptions(NamedTuple):
    # None: the column `topic` says it, for each row.
    topic: str | None
    guarantee: Guarantee
    scope: Scope
    id_prefix: str
    # What names a stream before Spark tells its id; None if its checkpoint is not in the options.
    checkpoint: str | None
    producer: dict[str, str]
    # How long brokers and topics are looked for that a worker has not written to before.
    connect_ms: int

    @property
    def timeout_ms(self) -> int:
        return int(self.producer["transaction.timeout.ms"])


def sink_options(given: Values, *, overwrite: bool, directory: str) -> SinkOptions:
    """`directory` is what a checkpoint's path begins with if it does not begin with a slash."""
    topic = given.text("topic")
    if topic == "":
        raise BadOption("topic", "it is empty")
    if overwrite:
        raise BadOption("mode", "a topic can be appended to, not overwritten")
    checkpoint = given.text("checkpointLocation")
    for name in _OF_SPARK:
        given.text(name)
    # Spark's own sink documents it, and writes the headers with either value.
    given.flag("includeHeaders", False)
    guarantee = _one_of(given, "deliveryGuarantee", Guarantee, Guarantee.AT_LEAST_ONCE)
    scope = _one_of(given, "transactionScope", Scope, Scope.TASK)
    is_exact = guarantee is Guarantee.EXACTLY_ONCE
    producer = producer_options(given, transactional=is_exact)
    if is_exact:
        producer.setdefault("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS)
    elif "transactionScope" in given:
        raise BadOption("transactionScope", "it needs deliveryGuarantee=exactly-once")
    options = SinkOptions(
        topic=topic,
        guarantee=guarantee,
        scope=scope,
        id_prefix=given.text("transactionalIdPrefix") or _ID_PREFIX,
        checkpoint=None if checkpoint is None else name_of_checkpoint(checkpoint, directory),
        producer=producer,
        connect_ms=connect_ms(given),
    )
    given.refuse_others(option_names(ProducerSettings))
    return options


def _one_of(given: Values, name: str, kind: type[E], default: E) -> E:
    text = given.text(name)
    if text is None:
        return default
    words = [one.value for one in kind]
    if text.lower() not in words:
        raise BadOption(name, f"{text!r} is not one of {', '.join(words)}")
    return kind(text.lower())
