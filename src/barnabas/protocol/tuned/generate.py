"""Write the modules of tuned messages: `python -m barnabas.protocol.tuned.generate DIRECTORY`.

setup.py runs this before mypyc. DIRECTORY contains the package `barnabas`. For every family of
messages with tuned ones it gets two files:

- `protocol/generated/FAMILY.py` has their classes and codecs, and is compiled.
- `protocol/messages/FAMILY.pyi` tells mypyc that these are the classes that other modules import from the
  family. setup.py deletes it after that, so that a type checker in the source tree needs no build.
"""

import ast
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from barnabas.protocol import messages
from barnabas.protocol.schema.source import Source
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.tuned.decoder_source import write_decoder
from barnabas.protocol.tuned.encoder_source import write_encoder
from barnabas.protocol.tuned.structs import holds_records, nested_structs, write_class

# The names available to generated code; a generated module imports the ones that it uses.
_IMPORTS: Final = {
    "librt.strings": (
        "BytesWriter",
        "read_i16_be",
        "read_i32_be",
        "read_i64_be",
        "write_i32_be",
        "write_i64_be",
    ),
    "mypy_extensions": ("i32", "i64", "mypyc_attr"),
    "barnabas.base.ids": ("Uuid",),
    "barnabas.protocol.schema.encoder": ("ENCODE_FAILURES", "Unwritable"),
    "barnabas.protocol.schema.explain": ("DECODE_FAILURES", "explain_bytes"),
    "barnabas.protocol.tuned.reader": (
        "NEW_LIST",
        "NO_TAGS",
        "Reader",
        "ZERO_UUID",
        "read_bool",
        "read_bytes",
        "read_count",
        "read_int8",
        "read_int16",
        "read_int32",
        "read_int64",
        "read_length",
        "read_null_array",
        "read_nullable_bytes",
        "read_nullable_string",
        "read_size",
        "read_string",
        "read_tag",
        "read_tags",
        "read_uuid",
        "signed_byte",
    ),
    "barnabas.protocol.tuned.writer": (
        "write_bool",
        "write_bytes",
        "write_count",
        "write_int8",
        "write_int16",
        "write_int32_item",
        "write_no_tags",
        "write_null_array",
        "write_nullable_bytes",
        "write_nullable_string",
        "write_string",
        "write_uuid",
    ),
    "barnabas.protocol.wire": ("UNKNOWN_TAGS_MAX", "BadWire"),
}


def families() -> list[str]:
    """The modules of messages/ that declare tuned messages."""
    names = sorted(path.stem for path in Path(messages.__path__[0]).glob("*.py"))
    return [name for name in names if name != "__init__" and tuned_messages(name)]


def tuned_messages(family: str) -> list[type]:
    module = import_module(f"{messages.__name__}.{family}")
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return [cls for cls in classes if "__schema__" in vars(cls) and schema_of(cls).is_tuned]


def tuned_structs(family: str) -> list[type]:
    """The tuned messages of a family and their structs, inner ones first."""
    found = dict.fromkeys(cls for one in tuned_messages(family) for cls in nested_structs(one))
    return list(found)


def module_source(family: str) -> str:
    """The classes and codecs of a family."""
    body = Source()
    for cls in tuned_structs(family):
        write_class(body, cls)
    tables = ["", "", "# By the name of the message.", "DECODERS: Final[dict[str, Callable[..., Any]]] = {"]
    tables += [f'    "{schema_of(cls).name}": {write_decoder(body, cls)},' for cls in tuned_messages(family)]
    tables += ["}", "ENCODERS: Final[dict[str, Callable[..., bool]]] = {"]
    for cls in tuned_messages(family):
        # Records are sent as they are, and not copied into the bytes of the message.
        if not holds_records(cls):
            tables.append(f'    "{schema_of(cls).name}": {write_encoder(body, cls)},')
    tables.append("}")
    text = body.text()
    head = [f'"""Generated from messages/{family}.py, by tuned/generate.py. Do not edit."""', ""]
    head += ["from collections.abc import Callable", "from typing import Any, Final"]
    for module, names in _IMPORTS.items():
        used = [name for name in names if re.search(rf"\b{name}\b", text)]
        if used:
            head.append(f"from {module} import {', '.join(used)}")
    return "\n".join([*head, text.rstrip(), *tables]) + "\n"


def stub_source(family: str) -> str:
    """A family's module with the tuned classes imported instead of declared."""
    path = Path(messages.__path__[0]) / f"{family}.py"
    lines = path.read_text().splitlines()
    names = {schema_of(cls).name for cls in tuned_structs(family)}
    imports = [f"from barnabas.protocol.generated.{family} import {name} as {name}" for name in sorted(names)]
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    for node in reversed(classes):
        if node.name in names:
            first = min(decorator.lineno for decorator in node.decorator_list)
            del lines[first - 1 : node.end_lineno]
    return "\n".join([*imports, *lines]) + "\n"


def write_all(directory: Path) -> None:
    package = directory / "barnabas" / "protocol"
    generated = package / "generated"
    generated.mkdir(parents=True, exist_ok=True)
    texts = {
        generated
        / "__init__.py": '"""Classes and codecs of tuned messages, written by tuned/generate.py."""\n'
    }
    for family in families():
        texts[generated / f"{family}.py"] = module_source(family)
        texts[package / "messages" / f"{family}.pyi"] = stub_source(family)
    for path, text in texts.items():
        path.write_text(text)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
