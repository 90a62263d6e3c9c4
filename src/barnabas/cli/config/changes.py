"""Parse --add-config, --add-config-file and --delete-config. Pure, except for reading the file."""

import re
from collections.abc import Iterable
from typing import Final

from barnabas.cli.option_parser import Options
from barnabas.cli.tool import ToolFailed, read_properties

# Matches outside of brackets, which protect commas in a value: k1=v1,k2=[v1,v2].
_OUTSIDE: Final = r"(?=[^\]]*(?:\[|$))"
_BETWEEN_PAIRS: Final = re.compile(rf",{_OUTSIDE}")
_EQUALS: Final = re.compile(rf"\s*=\s*{_OUTSIDE}")
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]*")


def check(options: Options) -> None:
    added = options.given("add-config")
    if added and options.given("add-config-file"):
        raise ToolFailed("Only one of --add-config or --add-config-file must be specified")
    if not (added or options.given("add-config-file") or options.given("delete-config")):
        raise ToolFailed(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified"
            " with --alter"
        )


def to_add(options: Options) -> dict[str, str]:
    found: dict[str, str] = {}
    if options.add_config_file is not None:
        found = read_properties(options.add_config_file)
    if options.add_config is not None:
        found.update(parse_pairs(options.add_config))
    for name in found:
        if _NAME.fullmatch(name) is None:
            raise ToolFailed(f"Invalid character found for config key: {name}")
    return found


def parse_pairs(text: str) -> dict[str, str]:
    pairs = [_EQUALS.split(pair) for pair in _BETWEEN_PAIRS.split(text.rstrip(","))]
    if any(len(pair) != 2 for pair in pairs):
        raise ToolFailed(
            "requirement failed: Invalid entity config: all configs to be added must be in the format"
            ' "key=val" or  "key=[val1,val2]" to group values which contain commas.'
        )
    return {name.strip(): re.sub(r"[\[\]]", "", value).strip() for name, value in pairs}


def to_delete(options: Options) -> list[str]:
    given: Iterable[str] = options.delete_config
    return [name.strip() for text in given for name in text.split(",") if name.strip()]
