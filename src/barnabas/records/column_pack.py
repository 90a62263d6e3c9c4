"""Write columns as record batches: the loop over all records (compiled).

Each record is measured, because its length comes first, and then written into the open batch.
column_cells.py copies the cells, column_seal.py adds the batch headers, columns_write.py calls
pack_records().
"""

from typing import Final, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

from barnabas.records.column_cells import NULL, ONE_BYTE, TWO_BYTES, Area, Column, cell_size, two_bytes
from barnabas.records.column_seal import Gather, Sealer, Stamp
from barnabas.records.encode import is_out_of_range, varint_size, write_varint
from barnabas.records.errors import InvalidBatch
from barnabas.records.header import HEADER_SIZE, INT32_MAX

# The varint of NULL.
NULL_LENGTH: Final = 1


@final
class Headers:
    """The headers of all records: counts per record (64 bits), and consecutive names and values."""

    def __init__(self, counts: bytes, names: Column, values: Column) -> None:
        self.counts = counts
        self.names = names
        self.values = values
        # The headers of the current record.
        self.first: i64 = 0
        self.count: i64 = 0

    def measure(self, row: i64) -> i64:
        """Advance to the next record, `row`, and return the size of its headers including their count."""
        at = self.first + self.count
        self.first = at
        self.count = read_i64_le(self.counts, 8 * row)
        size = varint_size(self.count)
        end = at + self.count
        while at < end:
            name_size = self.names.find(at)
            if name_size < 0:
                raise InvalidBatch("a header key is null", where=f"row {row}")
            size += cell_size(name_size) + cell_size(self.values.find(at))
            at += 1
        return size

    def write(self, area: Area) -> None:
        """Append the current record's headers, preceded by their count."""
        write_varint(area.out, self.count)
        at = self.first
        end = at + self.count
        while at < end:
            self.names.find(at)
            self.names.write(area)
            self.values.find(at)
            self.values.write(area)
            at += 1


def pack_deltas(time_delta: i64, offset_delta: i64) -> tuple[i64, i64]:
    """The two varints in one word, or NULL if they are too long for it; and their size."""
    if time_delta < 0 or time_delta >= TWO_BYTES or offset_delta >= TWO_BYTES:
        return NULL, varint_size(time_delta) + varint_size(offset_delta)
    word: i64 = offset_delta << 1
    size: i64 = 2
    if offset_delta >= ONE_BYTE:
        word = two_bytes(offset_delta)
        size = 3
    if time_delta < ONE_BYTE:
        return (word << 8) | (time_delta << 1), size
    return (word << 16) | two_bytes(time_delta), size + 1


def start_record(
    out: BytesWriter, body: i64, deltas: i64, deltas_size: i64, time_delta: i64, offset_delta: i64
) -> None:
    """Append a record's length, attributes and deltas; `deltas` comes from pack_deltas()."""
    if deltas < 0 or body >= TWO_BYTES:
        write_varint(out, body)
        out.append(0)
        write_varint(out, time_delta)
        write_varint(out, offset_delta)
        return
    end: i64 = len(out) + deltas_size + 2
    if body < ONE_BYTE:
        write_i64_le(out, (deltas << 16) | (body << 1))
    else:
        write_i64_le(out, (deltas << 24) | two_bytes(body))
        end += 1
    # Of the eight bytes of the word at most seven are used.
    out.truncate(end)


def write_cells(area: Area, keys: Column | None, values: Column, headers: Headers | None) -> None:
    """Append key, value and headers, each of which is already located at the row."""
    if keys is None:
        area.out.append(NULL_LENGTH)
    else:
        keys.write(area)
    values.write(area)
    if headers is None:
        area.out.append(0)
    else:
        headers.write(area)


def pack_records(
    rows: i64,
    keys: Column | None,
    values: Column,
    headers: Headers | None,
    times: bytes,
    area: Area,
    gather: Gather,
    stamp: Stamp,
    batch_records: i64,
    batch_bytes: i64,
) -> list[bytes]:
    """Write `rows` records as batches of at most `batch_records` records and `batch_bytes` bytes.

    `times` has 64-bit milliseconds. This is one long function because its state per record is faster in
    local variables than in an object.
    """
    sealer = Sealer(area, stamp, gather)
    row: i64 = 0
    count: i64 = 0
    size: i64 = 0
    base_time: i64 = 0
    max_time: i64 = 0
    limit: i64 = batch_bytes - HEADER_SIZE
    if limit > INT32_MAX - HEADER_SIZE:
        limit = INT32_MAX - HEADER_SIZE
    while row < rows:
        time: i64 = read_i64_le(times, 8 * row)
        if is_out_of_range(time):
            raise InvalidBatch(f"timestamp {time} is out of range", where=f"row {row}")
        key_size: i64 = NULL
        if keys is not None:
            key_size = keys.find(row)
        value_size: i64 = values.find(row)
        # One byte for the attributes, and one for a header count of 0.
        rest: i64 = 1 + cell_size(key_size) + cell_size(value_size)
        if headers is None:
            rest += 1
        else:
            rest += headers.measure(row)
        deltas, deltas_size = pack_deltas(time - base_time, count)
        body: i64 = rest + deltas_size
        whole: i64 = cell_size(body)
        if count > 0 and (count >= batch_records or size + whole > limit):
            sealer.end_batch(size, count, max_time)
            count = 0
        if count == 0:
            # The deltas of a batch's first record are zero.
            deltas = 0
            deltas_size = 2
            body = rest + 2
            whole = cell_size(body)
            if whole > INT32_MAX - HEADER_SIZE:
                raise InvalidBatch(
                    f"record size {whole} exceeds the maximum of {INT32_MAX - HEADER_SIZE} bytes",
                    where=f"row {row}",
                )
            base_time = time
            max_time = time
            size = 0
            sealer.open_batch(time)
        elif time > max_time:
            max_time = time
        start_record(area.out, body, deltas, deltas_size, time - base_time, count)
        write_cells(area, keys, values, headers)
        count += 1
        size += whole
        row += 1
    sealer.end_batch(size, count, max_time)
    sealer.flush()
    return sealer.sealed
