"""Create bytes objects that can be filled once, before they are shared.

The kernels read only `bytes` at full speed, but decompressors and Arrow write into buffers; converting a
buffer to bytes would copy every decompressed record once more. CPython's C API lets the creator of a bytes
object fill it (PyBytes_FromStringAndSize). The view must not be used any more once the bytes are passed on.
"""

import ctypes
import sys
from typing import Final

_WRITABLE: Final = 0x200  # PyBUF_WRITE

# Below this size a copy is cheaper than the calls: 8 kB take 0.6 microseconds, the calls 1.5. Besides, the
# interpreter may share short bytes objects.
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
    """Return an unshared bytes object and a view to fill it. Keep the bytes while you use the view.

    The memory is not cleared, which would cost as much as the copy that is saved. Fill all of it, or pass on
    only the part that you filled.
    """
    assert size >= FRESH_BYTES_MIN, f"{size} bytes may be shared"
    fresh: bytes = _new(None, size)
    # The local variable and the argument of the call; later Pythons do not count both.
    assert sys.getrefcount(fresh) <= 2, "the bytes object is shared"
    view: memoryview = _view_of(_address_of(fresh), size, _WRITABLE)
    return fresh, view
