"""Bytes that can be written once, before anybody sees them.

The kernels read `bytes` and nothing else at full speed, but decompressors and Arrow write into buffers;
going from a buffer to bytes would copy every unpacked record once more. CPython's C API allows a bytes
object to be filled in by whoever has just made it (PyBytes_FromStringAndSize), and that is all that
happens here: the view must be done with before the bytes are handed on.
"""

import ctypes
import sys
from typing import Final

_WRITABLE: Final = 0x200  # PyBUF_WRITE

# A copy of less than this costs less than the calls: 0.6 microseconds for 8 kB, and these are 1.5. Besides,
# short ones may be shared by the interpreter.
FRESH_BYTES_MIN: Final = 32 * 1024

_new = ctypes.pythonapi.PyBytes_FromStringAndSize
_new.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t]
_new.restype = ctypes.py_object
_address_of = ctypes.pythonapi.PyBytes_AsString
_address_of.argtypes = [ctypes.py_object]
_address_of.restype = ctypes.c_void_p
_view_of = ctypes.pythonapi.PyMemoryView_FromMemory
_view_of.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
_view_of.restype = ctypes.py_object


def fresh_bytes(size: int) -> tuple[bytes, memoryview]:
    """Return bytes that nobody else has, and a view to fill them with. Keep the bytes while you do.

    They hold what the memory held before: clearing it would cost as much as the copy that is saved. Fill
    all of them, or hand on only the part that you filled.
    """
    assert size >= FRESH_BYTES_MIN, f"{size} bytes may be shared"
    fresh: bytes = _new(None, size)
    # This frame's name and the argument of the call; later Pythons do not count both.
    assert sys.getrefcount(fresh) <= 2, "somebody else has these bytes"
    view: memoryview = _view_of(_address_of(fresh), size, _WRITABLE)
    return fresh, view
