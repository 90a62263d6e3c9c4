"""Every message at every version against bytes that Kafka 4.3.0's own codec wrote.

The vectors come with Kafka's JSON of the same message, so a field that is decoded into the wrong
place is seen although it would encode back to the same bytes.
"""

import base64
import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import barnabas.protocol.messages
import barnabas.protocol.stored
from barnabas.base.ids import format_uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.protocol.schema.struct import schema_of

pytestmark = pytest.mark.kernel

FIXTURES = Path(__file__).parent.parent / "fixtures" / "kafka-4.3"

# Not ours to speak: tiered storage's own topic, and a file that Kafka keeps as JSON.
NOT_DECLARED = {
    "QuorumStateData",
    "RemoteLogSegmentMetadataRecord",
    "RemoteLogSegmentMetadataSnapshotRecord",
    "RemoteLogSegmentMetadataUpdateRecord",
    "RemotePartitionDeleteMetadataRecord",
}


def declared_messages() -> dict[str, type]:
    found = {}
    for package in (barnabas.protocol.messages, barnabas.protocol.stored):
        for info in iter_modules(package.__path__, package.__name__ + "."):
            for value in vars(import_module(info.name)).values():
                is_declared = isinstance(value, type) and "__schema__" in vars(value)
                if is_declared and schema_of(value).kind != "struct":
                    found[schema_of(value).name] = value
    return found


MESSAGES = declared_messages()


def read_vectors() -> dict[str, dict[int, list[Any]]]:
    vectors: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    with lzma.open(FIXTURES / "vectors.jsonl.xz", "rt") as lines:
        for line in lines:
            vector = json.loads(line)
            vectors[vector["message"]][vector["version"]].append(vector)
    return vectors


VECTORS = read_vectors()


def test_every_message_of_kafka_is_declared_at_all_its_versions() -> None:
    kafkas = {(name, version) for name, versions in VECTORS.items() for version in versions}
    ours = {(name, version) for name, cls in MESSAGES.items() for version in schema_of(cls).versions.all()}

    assert {pair for pair in kafkas if pair[0] not in NOT_DECLARED} == ours


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_bytes_of_kafka_decode_to_its_values_and_encode_back(name: str) -> None:
    cls = MESSAGES[name]
    for version in schema_of(cls).versions.all():
        for vector in VECTORS[name][version]:
            data = bytes.fromhex(vector["hex"])

            message, end = decode(cls, version, data)

            assert end == len(data)
            assert as_kafkas_json(message_layout(cls, version), message) == vector["json"], version
            assert encode(message, version) == data, version


def test_api_keys_versions_and_headers_equal_kafkas() -> None:
    facts = json.loads((FIXTURES / "api_versions.json").read_text())

    assert [row["key"] for row in facts["apis"]] == [key.value for key in ApiKey]
    for row in facts["apis"]:
        ours = api(ApiKey(row["key"]))
        assert ours.key.name == row["name"]
        assert ours.last_stable == row["max"]
        # Produce is advertised from 0, because of a defect in librdkafka, but does not work below 3.
        assert ours.versions.first == (3 if ours.key is ApiKey.PRODUCE else row["min"])
        assert set(ours.listeners) == set(row["listeners"])
        for index, version in enumerate(range(row["min"], row["max"] + 1)):
            assert ours.request_header_version(version) == row["request_header_versions"][index]
            assert ours.response_header_version(version) == row["response_header_versions"][index]


def as_kafkas_json(layout: Layout, value: object) -> dict[str, Any]:
    return dict(_members(layout, value))


def _members(layout: Layout, value: object) -> Iterator[tuple[str, Any]]:
    present = {*layout.plain, *layout.tagged}
    for field in schema_of(layout.cls).fields:
        if field not in present:
            continue
        member = getattr(value, field.name)
        if field.tag is not None and _is_default(field, member):
            continue
        yield _camel(field.name), _json_value(layout, field, member)


def _is_default(field: Field, value: object) -> bool:
    if field.kind is Kind.STRUCT and field.struct is not None:
        default = field.default() if field.default is not None else None
        return value == default or (value == field.struct() and not field.null.first <= field.null.last)
    return bool(value == (field.default() if isinstance(field.default, type) else field.default))


def _json_value(layout: Layout, field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.kind is Kind.STRUCT:
        return as_kafkas_json(nested_layout(layout, field), value)
    if field.kind is Kind.ARRAY:
        assert field.item is not None
        return [_json_value(layout, field.item, item) for item in value]
    if field.kind is Kind.UUID:
        return format_uuid(value)
    if field.kind in (Kind.BYTES, Kind.RECORDS):
        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
