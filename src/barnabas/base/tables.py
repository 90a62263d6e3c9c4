"""Return the memory of a dict that has lost most of its entries."""

import sys
from typing import Any, Final

# A dict takes at most 100 bytes for an entry, unless entries were removed.
_BYTES_PER_ENTRY_MAX: Final = 512
_ENTRIES_MIN: Final = 16


def shrink(table: dict[Any, Any]) -> None:
    """Rebuild a dict that has far more slots than entries; call this when an entry has been removed.

    A dict never frees slots by itself: 100,000 deleted groups left 5 MB of them. A rebuild copies fewer
    entries than were removed before it, so its cost is amortized.
    """
    if sys.getsizeof(table) > _BYTES_PER_ENTRY_MAX * (len(table) + _ENTRIES_MIN):
        entries = list(table.items())
        table.clear()
        table.update(entries)
