"""The header of one batch as a native object (compiled): what appending and replaying ask for.

records.header.BatchHeader has the same fields as a tuple. This one is for the paths that look at every batch:
its fields are machine words, so reading one is not a call.
"""

from struct import Struct
from typing import Final

from mypy_extensions import i64

from barnabas.records.header import CONTROL_BIT, LENGTH_EXCLUDES
from barnabas.storage.files import Buffer

_HEADER: Final = Struct(">qiibIhiqqqhii")


class Batch:
    """The facts of one checked batch that appending it needs."""

    def __init__(self, data: Buffer, at: i64) -> None:
        fields = _HEADER.unpack_from(data, at)
        self.at: Final = at
        self.base_offset: Final[i64] = fields[0]
        length: i64 = fields[1]
        self.size: Final[i64] = LENGTH_EXCLUDES + length
        self.leader_epoch: Final[i64] = fields[2]
        self.attributes: Final[i64] = fields[5]
        self.last_delta: Final[i64] = fields[6]
        self.base_timestamp: Final[i64] = fields[7]
        self.max_timestamp: i64 = fields[8]
        self.producer_id: Final[i64] = fields[9]
        self.producer_epoch: Final[i64] = fields[10]
        self.base_sequence: Final[i64] = fields[11]
        self.count: Final[i64] = fields[12]
        self.magic: Final[i64] = fields[3]
        self.crc: Final[i64] = fields[4]

    def is_control(self) -> bool:
        return (self.attributes & CONTROL_BIT) != 0
