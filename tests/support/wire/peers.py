"""Where the independent codecs keep their version of a message of ours, if they have one."""

import re
from functools import cache
from importlib import import_module
from typing import Any

from kio.index import load_entity_schema
from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from barnabas.protocol.schema.struct import schema_of

# Among these are all messages of kafka-python; their classes are named as in Kafka.
_KAFKA_PYTHON_MODULES = (
    "kafka.protocol.admin",
    "kafka.protocol.api_header",
    "kafka.protocol.consumer",
    "kafka.protocol.consumer.metadata",
    "kafka.protocol.metadata",
    "kafka.protocol.producer",
    "kafka.protocol.sasl",
)
# Headers are read there by "flexible or not" and have no versions to ask for.
_KAFKA_PYTHON_HAS_NO_VERSIONS_OF = ("RequestHeader", "ResponseHeader")


@cache
def kio_class(cls: type, version: int) -> Any | None:
    """kio has a class for every version."""
    kind = schema_of(cls).kind
    suffix = kind.capitalize() if kind in ("request", "response") else ""
    name = _snake(cls.__name__.removesuffix(suffix))
    entity = EntityType[kind] if kind in EntityType.__members__ else EntityType.data
    if entity not in schema_name_map.get(name, {}).get(version, {}):
        return None
    return load_entity_schema(name, version, entity)  # type: ignore[arg-type]


@cache
def kafka_python_class(cls: type, version: int) -> Any | None:
    """kafka-python has a class for all versions, and takes the version with every call."""
    if cls.__name__ in _KAFKA_PYTHON_HAS_NO_VERSIONS_OF:
        return None
    for module in _KAFKA_PYTHON_MODULES:
        found = vars(import_module(module)).get(cls.__name__)
        if found is not None:
            first, last = found.valid_versions
            return found if first <= version <= last else None
    return None


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
