"""Hold back requests of one kind from one node, and let them go later: a late request is a fault, too."""

import asyncio


class Holds:
    """The held requests of a world. Senders wait here before they send."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], asyncio.Event] = {}

    def add(self, request: str, source: str) -> None:
        self._held.setdefault((request, source), asyncio.Event())

    def remove(self, request: str, source: str) -> None:
        event = self._held.pop((request, source), None)
        if event is not None:
            event.set()

    def clear(self) -> None:
        for request, source in list(self._held):
            self.remove(request, source)

    async def wait(self, request: str, source: str) -> None:
        """Wait until requests of this kind may leave."""
        event = self._held.get((request, source))
        if event is not None:
            await event.wait()
