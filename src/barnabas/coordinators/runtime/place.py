"""Offset, leader epoch, size limit and codec of a shard's next batch (compiled)."""

from typing import Final, final

from mypy_extensions import mypyc_attr

from barnabas.records.header import Codec


@mypyc_attr(acyclic=True)
@final
class Place:
    """A batch built for its place is appended unchanged. The log rewrites the offsets of any other batch."""

    __slots__ = ("base_offset", "bytes_max", "codec", "leader_epoch")

    def __init__(self, base_offset: int, leader_epoch: int, bytes_max: int, codec: Codec) -> None:
        self.base_offset: Final = base_offset
        self.leader_epoch: Final = leader_epoch
        # Maximum size of the batch.
        self.bytes_max: Final = bytes_max
        self.codec: Final = codec
