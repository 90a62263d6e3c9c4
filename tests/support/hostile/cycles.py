"""Find the objects that only the garbage collector frees, with the collector switched off.

    with left_in_cycles() as left:
        story()
    assert left == []

The collector never gets objects that are freed by their reference counts. An object that it finds at the end
of the block is part of a reference cycle or referenced by one.
"""

import gc
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import barnabas

_SOURCE = str(Path(barnabas.__file__).parent)
# Minimum size of a bytes object held by a cycle that is reported.
LARGE_BYTES = 10_000


@contextmanager
def left_in_cycles() -> Iterator[list[str]]:
    """Yield a list. After the block it names our objects that reference counts have not freed."""
    left: list[str] = []
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    # What is alive now may become garbage too: it is unfrozen again for the last look.
    flags = gc.get_debug()
    try:
        yield left
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left += sorted({name for one in gc.garbage if (name := _name_of(one)) is not None})
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()


def _name_of(one: Any) -> str | None:
    """The name of the object's class or function if it is defined in our sources, else None."""
    match one:
        case types.FrameType():
            code = one.f_code
        case types.FunctionType():
            code = one.__code__
        case types.TracebackType():
            code = one.tb_frame.f_code
        case types.CoroutineType():
            code = one.cr_code
        case types.MethodType() | types.BuiltinMethodType():
            return None
        case _:
            kind = type(one)
            if kind.__module__.partition(".")[0] in ("barnabas", "uvloop", "asyncio", "_asyncio"):
                return f"{kind.__module__}.{kind.__qualname__}"
            return None
    if not code.co_filename.startswith(_SOURCE):
        return None
    return f"{type(one).__name__} of {code.co_filename.removeprefix(_SOURCE)}:{code.co_qualname}"
