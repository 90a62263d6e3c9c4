"""Allocate objects with malloc() instead of pymalloc while a process grows.

pymalloc, Python's allocator for objects of up to 512 bytes, takes arenas of 1 MB from the system and returns
an arena when its last object is freed. After a spike a few objects, each in an arena of its own, keep all of
the memory: a broker that had 3,000 connections kept half of it. malloc_trim() returns every free page, but
malloc() is slower: a small request takes 10 to 30 % more CPU. So a process should use pymalloc while its size
is steady, and malloc() only for objects that are likely to be freed together: those allocated while it grows.

Both can be mixed at any time. pymalloc itself takes larger blocks from malloc(), so its free() and realloc()
recognize by the address which of the two a block is from. The switch therefore replaces only the functions
that allocate, through PyMem_SetAllocator(). It does nothing if other allocators are in use: in a
free-threaded Python, with debug hooks, or under tracemalloc.
"""

import ctypes
import sys
from typing import Final

# Of enum PyMemAllocatorDomain.
_RAW: Final = 0
_MEM: Final = 1
_OBJECT: Final = 2
_DOMAINS: Final = (_MEM, _OBJECT)
_FREE_THREADED: Final = "t"
# The newest Python that this was tested with.
NEWEST_PYTHON: Final = (3, 13)


class _Allocator(ctypes.Structure):
    """PyMemAllocatorEx."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free"))


class ObjectAllocator:
    """The switch for this process, which should have only one."""

    def __init__(self) -> None:
        self.uses_malloc = False
        self._before = {domain: _allocator(domain) for domain in _DOMAINS}
        raw = _allocator(_RAW)
        # A context means that hooks are installed that track every block.
        hooked = any(one.ctx for one in (raw, *self._before.values()))
        self.can_switch: Final = (
            not hooked
            and sys.implementation.name == "cpython"
            and sys.version_info[:2] <= NEWEST_PYTHON
            and _FREE_THREADED not in sys.abiflags
        )
        self._mixed = {
            domain: _Allocator(None, raw.malloc, raw.calloc, before.realloc, before.free)
            for domain, before in self._before.items()
        }

    def use_malloc(self) -> None:
        self._switch(True)

    def use_pymalloc(self) -> None:
        self._switch(False)

    def _switch(self, uses_malloc: bool) -> None:
        if self.can_switch and uses_malloc != self.uses_malloc:
            self.uses_malloc = uses_malloc
            for domain, allocator in (self._mixed if uses_malloc else self._before).items():
                ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(allocator))


def _allocator(domain: int) -> _Allocator:
    found = _Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(found))
    return found
