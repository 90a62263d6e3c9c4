"""Find the bytes object under a memoryview, so that kernels, which read bytes, need no copy.

A memoryview has a reference to the object but not its start in it; CPython's buffer interface has that.
"""

import ctypes
from typing import Final

_SIMPLE: Final = 0  # PyBUF_SIMPLE


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
_address_of = ctypes.pythonapi.PyBytes_AsString
_address_of.argtypes = [ctypes.py_object]
_address_of.restype = ctypes.c_void_p


def bytes_beneath(view: memoryview) -> tuple[bytes, int] | None:
    """The bytes object under a contiguous view, and the view's start in it; None for other objects."""
    beneath = view.obj
    if type(beneath) is not bytes or not view.contiguous:
        return None
    buffer = _Buffer()
    _get(view, buffer, _SIMPLE)
    start = buffer.buf - _address_of(beneath)
    _release(buffer)
    assert 0 <= start <= len(beneath) - view.nbytes, f"{view.nbytes} bytes at {start} of {len(beneath)}"
    return beneath, start
