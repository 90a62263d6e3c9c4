"""The generator of tuned codecs. That the codecs work is shown by tests/property/test_tuned_codecs.py."""

import ast
from pathlib import Path

import pytest

from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.schema.fields import array, string, uint16
from barnabas.protocol.schema.source import Source
from barnabas.protocol.schema.struct import request, struct
from barnabas.protocol.schema.versions import parse_versions
from barnabas.protocol.tuned.decoder_source import write_decoder
from barnabas.protocol.tuned.encoder_source import write_encoder
from barnabas.protocol.tuned.generate import families, module_source, stub_source, write_all
from barnabas.protocol.tuned.structs import Unsupported, condition, is_opposite, write_class


@struct
class Port:
    name: str = string("0-1")
    number: int = uint16()


@request(1000, versions="0-3", flexible="2+", tuned=True)
class PortsRequest:
    ports: list[Port] = array(Port)


def classes_in(source: str) -> set[str]:
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def test_a_stub_imports_tuned_classes_and_declares_the_others() -> None:
    stub = stub_source("fetch")

    assert "from barnabas.protocol.generated.fetch import FetchRequest as FetchRequest\n" in stub
    assert "FetchRequest" not in classes_in(stub)
    assert {"FetchResponse", "PartitionData"} <= classes_in(stub)


def test_a_module_has_the_classes_of_tuned_messages_only() -> None:
    names = classes_in(module_source("fetch"))

    assert {"FetchRequest", "FetchTopic", "FetchPartition"} <= names
    assert FetchResponse.__name__ not in names


def test_every_family_gets_a_module_and_a_stub(tmp_path: Path) -> None:
    (tmp_path / "barnabas/protocol/messages").mkdir(parents=True)

    write_all(tmp_path)

    modules = {path.stem for path in tmp_path.glob("barnabas/protocol/generated/*.py")}
    assert modules == {"__init__", *families()}
    assert {path.stem for path in tmp_path.glob("barnabas/protocol/messages/*.pyi")} == set(families())


@pytest.mark.parametrize("write", [write_class, write_decoder, write_encoder])
def test_a_kind_without_tuned_code_is_refused_by_name(write: object) -> None:
    assert callable(write)
    cls = Port if write is write_class else PortsRequest

    with pytest.raises(Unsupported, match="number: uint16"):
        write(Source(), cls)


@pytest.mark.parametrize(
    ("field", "within", "expected"),
    [
        ("0+", "3-13", ""),
        ("5+", "3-13", "version >= 5"),
        ("0-12", "3-13", "version <= 12"),
        ("5-8", "3-13", "5 <= version <= 8"),
        ("14+", "3-13", "False"),
    ],
)
def test_a_condition_says_which_versions_have_a_field(field: str, within: str, expected: str) -> None:
    assert condition(parse_versions(field), parse_versions(within)) == expected


def test_neighbouring_ranges_of_versions_are_opposites() -> None:
    assert is_opposite("version <= 9", "version >= 10")
    assert is_opposite("version >= 10", "version <= 9")
    assert not is_opposite("version <= 9", "version >= 11")
    assert not is_opposite("", "version >= 10")
