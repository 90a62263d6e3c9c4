"""Apply metadata images to the broker one after another, and publish each when it has been applied.

The broker must not answer requests about a topic whose log does not exist yet. So an image becomes the
broker's image only after it has been applied. If images come faster than that, those in between are skipped.
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
    """The loader calls publish(); run() applies images; until() and reached() wait for one."""

    def __init__(self) -> None:
        # The image that the broker has applied, and the newest one.
        self.image: MetadataImage = EMPTY_IMAGE
        self.latest: MetadataImage = EMPTY_IMAGE
        self._carry_out: CarryOut | None = None
        self._wake = asyncio.Event()
        self._waiting: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []

    def publish(self, image: MetadataImage, changes: Changes) -> None:
        """Take a newer image. run() computes the changes when it applies it."""
        self.latest = image
        self._wake.set()

    def begin(self, image: MetadataImage, carry_out: CarryOut) -> None:
        """Start to apply changes; `image` has been applied already."""
        self._carry_out = carry_out
        self._show(image)
        self._wake.set()

    async def run(self) -> None:
        """Apply images, until cancelled."""
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
        """Wait for an image for which `wanted` is true; return False on timeout.

        Before begin() this looks at the latest image, after it at the applied one.
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
