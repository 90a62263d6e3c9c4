"""The options of the sink, with Spark's names where Spark has them."""

import re
from enum import Enum
from hashlib import sha256
from posixpath import join, normpath
from typing import Final, NamedTuple, TypeVar

from barnabas.client.producer.settings import ProducerSettings
from barnabas.spark.options.client_settings import connect_ms, option_names, producer_options
from barnabas.spark.options.values import BadOption, Values

E = TypeVar("E", bound=Enum)

_ID_PREFIX: Final = "barnabas-spark-sink"
# The broker's default of transaction.max.timeout.ms. A micro-batch must end within it.
_TRANSACTION_TIMEOUT_MS: Final = "900000"
# Spark's own options, which it passes to every sink.
_OF_SPARK: Final = ("checkpointLocation", "queryName", "path")
_CHECKPOINT_NAME_SIZE: Final = 24
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):(//([^/]*))?(/.*)?", re.IGNORECASE)


class Guarantee(Enum):
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


class Scope(Enum):
    """The rows of one transaction: those of a task or those of a micro-batch."""

    TASK = "task"
    BATCH = "batch"


class SinkOptions(NamedTuple):
    # None: the column `topic` names the topic of each row.
    topic: str | None
    guarantee: Guarantee
    scope: Scope
    id_prefix: str
    # Name derived from the checkpoint location; None without the option checkpointLocation.
    checkpoint: str | None
    producer: dict[str, str]
    # Timeout for the brokers and topics to which a worker writes for the first time.
    connect_ms: int

    @property
    def timeout_ms(self) -> int:
        return int(self.producer["transaction.timeout.ms"])


def sink_options(given: Values, *, overwrite: bool, directory: str) -> SinkOptions:
    """Parse the options. Relative checkpoint paths are resolved against `directory`."""
    topic = given.text("topic")
    if topic == "":
        raise BadOption("topic", "it is empty")
    if overwrite:
        raise BadOption("mode", "a topic can be appended to, not overwritten")
    checkpoint = given.text("checkpointLocation")
    for name in _OF_SPARK:
        given.text(name)
    # Spark's own sink documents the option but writes headers with either value.
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


def name_of_checkpoint(location: str, directory: str) -> str:
    """Return the name of a stream, derived from its checkpoint location.

    A relative location is resolved against `directory`. Different spellings of a location give the same name:
    it is part of the transactional.id with which a restarted query fences its open transaction. Links are not
    resolved.
    """
    return sha256(_normalized(location, directory).encode()).hexdigest()[:_CHECKPOINT_NAME_SIZE]


def _normalized(location: str, directory: str) -> str:
    """Normalize a location. A local path gets no scheme, so that names stay the same across releases."""
    found = _SCHEME.fullmatch(location)
    if found is None:
        return _normalized_path(join(directory, location))
    scheme, host, path = found[1].lower(), found[3] or "", _normalized_path(found[4] or "/")
    if scheme == "file" and not host:
        return path
    if path == "/":
        path = ""
    return f"{scheme}://{host}{path}"


def _normalized_path(path: str) -> str:
    # normpath() keeps two leading slashes, which POSIX leaves to the implementation.
    return normpath("/" + path.lstrip("/"))
