"""Records that say themselves where they belong: which run, which input partition, and which number there.

The source writes `in` records, numbered from 0 in each input partition; a worker makes one `out` record of
each. Both also name the process that wrote them and its transaction, so that whoever reads a record that must
not be seen can say whose it was.
"""

from typing import NamedTuple

INPUT, OUTPUT = "in", "out"
_MARK = b":"


class Mark(NamedTuple):
    """What a record says. `life` is the process that wrote it, `transaction` counts those of that process."""

    kind: str
    run: str
    partition: int
    number: int
    life: str
    transaction: int

    def text(self) -> bytes:
        return _MARK.join(str(part).encode() for part in self)


class Seen(NamedTuple):
    """A record as it was read; a mark of None is a record that nobody of ours wrote."""

    offset: int
    mark: Mark | None
    value: bytes


def read_mark(value: bytes) -> Mark | None:
    """What the record says; None if it is none of ours."""
    parts = value.decode(errors="replace").split(_MARK.decode())
    if len(parts) != len(Mark._fields) or parts[0] not in (INPUT, OUTPUT):
        return None
    kind, run, partition, number, life, transaction = parts
    if not (partition.isdecimal() and number.isdecimal() and transaction.isdecimal()):
        return None
    return Mark(kind, run, int(partition), int(number), life, int(transaction))


def seen(offset: int, value: bytes | None) -> Seen:
    value = value or b""
    return Seen(offset, read_mark(value), value)


def output_partition(partition: int, number: int, partitions: int) -> int:
    """Neighbours go to different partitions, so that every transaction has several to keep together."""
    return (partition + number) % partitions
