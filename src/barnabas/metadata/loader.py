"""Apply committed records and publish one image after another.

The quorum calls load_snapshot() and committed(); the listener is called with each image and the changes since
the previous one. A transaction of the metadata log (KIP-868) becomes visible as a whole when it ends, or
never. Nothing here waits or writes: it runs inside the quorum's delivery.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from barnabas.metadata.changes import Changes
from barnabas.metadata.difference import difference
from barnabas.metadata.errors import MetadataInconsistent
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.protocol.stored.cluster_nodes import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


class SnapshotId(Protocol):
    """A snapshot contains everything below `offset`; `epoch` is that of its last record."""

    @property
    def offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...


class Batch(Protocol):
    """Committed records, each with its stored version. A control batch has no records."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def append_time_ms(self) -> int: ...
    @property
    def records(self) -> Sequence[tuple[object, int]]: ...


class _Position(NamedTuple):
    offset: int
    epoch: int
    append_time_ms: int


class MetadataLoader:
    """Calls `on_image(image, changes)` in log order; `image` is the latest one."""

    def __init__(self, on_image: Callable[[MetadataImage, Changes], None]) -> None:
        self._on_image = on_image
        self.image: MetadataImage = EMPTY_IMAGE
        # Changes that are applied but not published, and their position.
        self._changes: Changes | None = None
        self._reached: _Position | None = None
        # Records of the open transaction.
        self._open: list[object] | None = None
        self._holding = False

    @property
    def in_transaction(self) -> bool:
        return self._open is not None

    def hold(self) -> None:
        """Publish nothing until release(): at a start thousands of batches become one image."""
        self._holding = True

    def release(self) -> None:
        self._holding = False
        self._publish()

    def load_snapshot(self, snapshot_id: SnapshotId, records: Iterable[object]) -> None:
        """Replace the image by a snapshot."""
        fresh = Changes(EMPTY_IMAGE)
        for record in records:
            fresh.apply(record)
        image = fresh.finish(snapshot_id.offset - 1, snapshot_id.epoch, -1)
        changes = difference(self.image, image)
        self.image = image
        self._changes = self._reached = self._open = None
        self._on_image(image, changes)

    def committed(self, batch: Batch) -> None:
        for at, (record, _) in enumerate(batch.records):
            self._take(record, batch, at)
        if self._open is None:
            self._advance(batch, batch.last_offset)
        if not self._holding:
            self._publish()

    def _take(self, record: object, batch: Batch, at: int) -> None:
        match record:
            case BeginTransactionRecord():
                if self._open is not None:
                    raise MetadataInconsistent(
                        record, f"offset {batch.base_offset + at}: a transaction is open already"
                    )
                # A snapshot may be written as of the image's offset, so exclude the open transaction.
                self._advance(batch, batch.base_offset + at - 1)
                self._open = []
            case EndTransactionRecord() | AbortTransactionRecord():
                if self._open is None:
                    raise MetadataInconsistent(
                        record, f"offset {batch.base_offset + at}: no transaction is open"
                    )
                held, self._open = self._open, None
                if isinstance(record, EndTransactionRecord):
                    for one in held:
                        self._pending().apply(one)
            case _ if self._open is not None:
                self._open.append(record)
            case _:
                self._pending().apply(record)

    def _pending(self) -> Changes:
        if self._changes is None:
            self._changes = Changes(self.image)
        return self._changes

    def _advance(self, batch: Batch, offset: int) -> None:
        if offset >= batch.base_offset:
            self._reached = _Position(offset, batch.epoch, batch.append_time_ms)

    def _publish(self) -> None:
        if self._reached is None:
            return
        changes = self._pending()
        self.image = changes.finish(*self._reached)
        self._changes = self._reached = None
        self._on_image(self.image, changes)
