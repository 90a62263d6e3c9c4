"""Carries out what the metadata says, image after image, and lets the broker see each when that is done.

The broker must not speak of a topic whose log it has not made yet. So an image becomes the broker's image
when it has been carried out. If images come faster than that, the ones in between are left out.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.metadata.changes import Changes
from barnabas.metadata.difference import difference
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage

logger = logging.getLogger(__name__)

CarryOut = Callable[[MetadataImage, Changes], Awaitable[None]]


class ImageFollower:
    """publish() is called by the loader; run() works; reached() waits."""

    def __init__(self) -> None:
        # As far as the broker is: everything in it has been carried out.
        self.image: MetadataImage = EMPTY_IMAGE
        self.latest: MetadataImage = EMPTY_IMAGE
        self._carry_out: CarryOut | None = None
        self._wake = asyncio.Event()
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []

    def publish(self, image: MetadataImage, changes: Changes) -> None:
        """There is a newer image. What changed is found out when its turn comes."""
        self.latest = image
        self._wake.set()

    def begin(self, image: MetadataImage, carry_out: CarryOut) -> None:
        """From here on changes are carried out; `image` is what has been already."""
        self._carry_out = carry_out
        self._show(image)
        self._wake.set()

    async def run(self) -> None:
        """Follow, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._carry_out is None:
                self._tell(self.latest)
                continue
            image = self.latest
            if image is not self.image:
                await self._carry_out(image, difference(self.image, image))
                self._show(image)

    def _show(self, image: MetadataImage) -> None:
        self.image = image
        self._tell(image)

    def _tell(self, image: MetadataImage) -> None:
        still = []
        for wanted, future in self._waiting:
            if future.done():
                continue
            if wanted(image):
                future.set_result(None)
            else:
                still.append((wanted, future))
        self._waiting = still

    async def until(self, wanted: Callable[[MetadataImage], bool], timeout_s: float) -> bool:
        """Wait for an image of which that is true; False if none came within the time.

        Until begin() the latest image counts, after it the one that has been carried out.
        """
        image = self.latest if self._carry_out is None else self.image
        if wanted(image):
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, future))
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            return False
        return True

    async def reached(self, offset: int, timeout_s: float) -> bool:
        return await self.until(lambda image: image.offset >= offset, timeout_s)


REACH_TIMEOUT_S: Final = 5.0
