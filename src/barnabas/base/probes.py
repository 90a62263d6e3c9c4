"""Named events inside the code, for simulations that watch it or cause a fault at that moment.

A probe does nothing unless a simulation watches. Call it on cold paths only. The names are an interface:
stored schedules of faults refer to them.
"""

from collections.abc import Callable

Watcher = Callable[[str, object], None]

_watcher: Watcher | None = None


def probe(name: str, about: object = None) -> None:
    """Report that the event `name` happens now."""
    if _watcher is not None:
        _watcher(name, about)


def watch_probes(watcher: Watcher | None) -> None:
    """Send all probes of this process to `watcher`, or to nobody."""
    global _watcher
    _watcher = watcher
