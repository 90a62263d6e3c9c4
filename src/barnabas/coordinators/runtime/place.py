"""Where a shard's next batch goes, and what it may be there (compiled)."""

from typing import Final, final

from mypy_extensions import mypyc_attr

from barnabas.records.header import Codec


@mypyc_attr(acyclic=True)
@final
class Place:
    """A batch that is built for its place is written as it is. Any other is numbered anew by the log."""

    __slots__ = ("base_offset", "bytes_max", "codec", "leader_epoch")

    def __init__(self, base_offset: int, leader_epoch: int, bytes_max: int, codec: Codec) -> None:
        self.base_offset: Final = base_offset
        self.leader_epoch: Final = leader_epoch
        # How large it may be, and how it is compressed.
        self.bytes_max: Final = bytes_max
        self.codec: Final = codec
