"""CRC-32C, by the C extension of the crc32c package, without the rest of that package.

Its __init__ reads its own version with importlib.metadata, which imports e-mail, zip and CSV: about 15 of the
200 ms that a broker or a tool needs to start. So the extension module is loaded directly, under its own name;
a later import of the package gets the same module.
"""

import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from os.path import join
from typing import Final, TypeAlias

Crc: TypeAlias = Callable[..., int]

_PACKAGE: Final = "crc32c"
_EXTENSION: Final = "crc32c._crc32c"


def _function() -> Crc:
    if _PACKAGE not in sys.modules and _EXTENSION not in sys.modules:
        _load_extension()
    extension = sys.modules.get(_EXTENSION)
    if extension is None:
        # Not laid out like the wheels: import the whole package.
        import crc32c as package

        return package.crc32c
    found: Crc = extension.crc32c
    return found


def _load_extension() -> None:
    package = find_spec(_PACKAGE)
    for place in (package and package.submodule_search_locations) or ():
        for suffix in EXTENSION_SUFFIXES:
            path = join(place, f"_crc32c{suffix}")
            spec = spec_from_file_location(_EXTENSION, path, loader=ExtensionFileLoader(_EXTENSION, path))
            if spec is None or spec.loader is None:
                continue
            try:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
            except ImportError:
                continue
            sys.modules[_EXTENSION] = module
            return


crc32c: Final[Crc] = _function()
