"""The classes of tuned messages, compiled if the tests run on compiled kernels, otherwise generated here.

Outside these tests, interpreted programs use generic classes and codecs.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from barnabas.base.kernels import GENERATED, compiled_kernels
from barnabas.protocol.schema import struct
from barnabas.protocol.tuned.generate import module_source


def generated(name: str) -> ModuleType:
    """A generated module, whose classes have got their schemas."""
    declarations = import_module(name.replace(".generated.", ".messages."))
    if compiled_kernels()[name]:
        return import_module(name)
    module = ModuleType(name)
    source = module_source(name.rpartition(".")[2])
    exec(compile(source, f"<{name}>", "exec"), vars(module))
    # Declare the messages again, with these classes.
    assert declarations.__file__ is not None
    with patch.object(struct, "_generated_module", lambda _: module):
        text = Path(declarations.__file__).read_text()
        exec(compile(text, declarations.__file__, "exec"), vars(ModuleType(declarations.__name__)))
    return module


TUNED: list[type[Any]] = [
    value
    for name in GENERATED
    for value in vars(generated(name)).values()
    if isinstance(value, type) and "__schema__" in vars(value)
]
