"""Avoid copies between bytes and other buffers, through CPython's C API.

The kernels read only `bytes` at full speed. fresh_bytes() creates a bytes object that decompressors and Arrow
can fill once; converting their buffers would copy every decompressed record once more. bytes_of_view() finds
the bytes object of a memoryview and the view's position in it, which a memoryview itself does not tell.
"""

import ctypes
import sys
from typing import Final

_WRITABLE: Final = 0x200  # PyBUF_WRITE
_SIMPLE: Final = 0  # PyBUF_SIMPLE

# Below this size a copy is cheaper than the calls: 8 kB take 0.6 microseconds, the calls 1.5. Besides, the
# interpreter may share short bytes objects.
FRESH_BYTES_MIN: Final = 32 * 1024


class _Buffer(ctypes.Structure):
    """Py_buffer. Only `buf` is read; PyBuffer_Release() needs the rest."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_Buffer)]
_release.restype = None
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

    CPython lets the creator of a bytes object fill it (PyBytes_FromStringAndSize). The view must not be used
    any more once the bytes are passed on.

    The memory is not cleared, which would cost as much as the copy that is saved. Fill all of it, or pass on
    only the part that you filled.
    """
    assert size >= FRESH_BYTES_MIN, f"{size} bytes may be shared"
    fresh: bytes = _new(None, size)
    # The local variable and the argument of the call; later Pythons do not count both.
    assert sys.getrefcount(fresh) <= 2, "the bytes object is shared"
    view: memoryview = _view_of(_address_of(fresh), size, _WRITABLE)
    return fresh, view


def bytes_of_view(view: memoryview) -> tuple[bytes, int] | None:
    """The bytes object of a contiguous view, and the view's start in it; None for other objects."""
    whole = view.obj
    if type(whole) is not bytes or not view.contiguous:
        return None
    buffer = _Buffer()
    _get(view, buffer, _SIMPLE)
    start = buffer.buf - _address_of(whole)
    _release(buffer)
    assert 0 <= start <= len(whole) - view.nbytes, f"{view.nbytes} bytes at {start} of {len(whole)}"
    return whole, start
