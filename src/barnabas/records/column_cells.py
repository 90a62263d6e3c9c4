"""Copy the cells of a binary column into a batch (compiled).

Column.find() locates a cell; Column.write() writes it to an Area, the buffer of batches. Kernels read only
`bytes` objects at full speed, not Arrow's memory. So short cells are fetched in pages that stay in the CPU
cache, and copied from there: up to SHORT bytes word by word, longer ones as a slice. Measured in ns for a
cell of 10, 100, 300 and 1000 bytes: word by word 4, 14, 36 and 109; as a slice, which creates a temporary
object, 16, 17, 25 and 80. If rows are large, cells above SHORT are not copied here: the area stores views of
them, and Arrow gathers text and cells in one call, without an object per cell and in 65 ns for 1000 bytes.
"""

from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, i64, u8

from barnabas.records.encode import varint_size, write_varint
from barnabas.records.errors import InvalidBatch

NULL: Final = -1
WORD: Final = 8
SHORT: Final = 128
# From this size on a cell is fetched alone: a page would copy it twice.
LONG: Final = 16_384
PAGE_BYTES: Final = 65_536
# Arrow stores up to INLINE bytes in the view itself, and has 31-bit positions in buffers.
INLINE: Final = 12
VIEW_LIMIT: Final = 0x7FFFFFFF
# Numbers below these take one and two bytes as a varint.
ONE_BYTE: Final = 64
TWO_BYTES: Final = 8192


@final
class Area:
    """Batches being written: their text, and with `gathers` also views of the bytes to gather later.

    The text includes the headers. Views have the layout of Arrow's binary_view; buffer 0 is the text.
    """

    def __init__(self, gathers: bool) -> None:
        self.gathers = gathers
        self.out = BytesWriter()
        self.views = BytesWriter()
        # The start of the text that no view covers yet.
        self.text_start: i64 = 0

    def refer(self, buffer: i64, start: i64, size: i64) -> None:
        """Append a piece of another buffer without copying it."""
        self.end_text()
        write_i64_le(self.views, size)
        write_i64_le(self.views, (start << 32) | buffer)

    def end_text(self) -> None:
        """Add a view of the text that no view covers yet."""
        at = self.text_start
        out = self.out
        end: i64 = len(out)
        size = end - at
        self.text_start = end
        if size > INLINE:
            write_i64_le(self.views, size)
            write_i64_le(self.views, at << 32)
            return
        write_i32_le(self.views, i32(size))
        stop = at + INLINE
        while at < stop:
            if at < end:
                self.views.append(out[at])
            else:
                self.views.append(0)
            at += 1

    def clear(self) -> None:
        self.out.truncate(0)
        self.views.truncate(0)
        self.text_start = 0


@final
class Column:
    """An Arrow column: offsets (64 or 32 bits), data, and validity bits.

    Empty `bits` means that no row is null. Row 0 has bit `first_bit`, because Arrow slices without
    moving bits. `buffer` is the index of the data in views.
    """

    def __init__(
        self, buffer: i64, offsets: bytes, wide: bool, data: memoryview, bits: bytes, first_bit: i64
    ) -> None:
        self.buffer: i64 = buffer
        self.offsets = offsets
        self.wide = wide
        self.data = data
        self.data_end: i64 = len(data)
        self.bits = bits
        self.first_bit: i64 = first_bit
        self.page = b""
        self.page_start: i64 = 0
        self.page_end: i64 = 0
        # The cell that find() located.
        self.start: i64 = 0
        self.size: i64 = 0

    def find(self, row: i64) -> i64:
        """Locate the cell of `row` and return its size, or NULL."""
        bits = self.bits
        if len(bits) > 0:
            bit: i64 = self.first_bit + row
            if (i64(bits[bit >> 3]) >> (bit & 7)) & 1 == 0:
                self.size = NULL
                return NULL
        offsets = self.offsets
        start: i64
        end: i64
        if self.wide:
            start = read_i64_le(offsets, 8 * row)
            end = read_i64_le(offsets, 8 * row + 8)
        else:
            start = i64(read_i32_le(offsets, 4 * row))
            end = i64(read_i32_le(offsets, 4 * row + 4))
        if start < 0 or end < start:
            raise InvalidBatch(f"cell offsets {start} to {end} are invalid", where=f"row {row}")
        self.start = start
        self.size = end - start
        return self.size

    def write(self, area: Area) -> None:
        """Append the located cell, preceded by its length."""
        size = self.size
        out = area.out
        if size < ONE_BYTE and size >= 0:
            out.append(u8(size << 1))
        elif size < TWO_BYTES and size >= 0:
            write_i16_le(out, i16(two_bytes(size)))
        else:
            write_varint(out, size)
        if size <= 0:
            return
        if size > SHORT and (area.gathers or size >= LONG):
            self.write_long(area)
            return
        end = self.start + size
        if self.start < self.page_start or end > self.page_end:
            self.turn_page()
        page = self.page
        at = self.start - self.page_start
        # Copying whole words writes past the end of the cell, which is truncated afterwards; the page must
        # have a word left after the cell.
        if size <= SHORT and end + WORD <= self.page_end:
            whole: i64 = len(out) + size
            stop = at + size
            while at < stop:
                write_i64_le(out, read_i64_le(page, at))
                at += WORD
            out.truncate(whole)
        else:
            out.write(page[at : at + size])

    def write_long(self, area: Area) -> None:
        end = self.start + self.size
        if not area.gathers or end > VIEW_LIMIT:
            area.out.write(self.fetch(self.size))
        elif end > self.data_end:
            self.refuse()
        else:
            area.refer(self.buffer, self.start, self.size)

    def turn_page(self) -> None:
        self.page = self.fetch(PAGE_BYTES)
        self.page_start = self.start
        self.page_end = self.start + len(self.page)

    def fetch(self, size: i64) -> bytes:
        """Up to `size` bytes from the start of the cell, at least the whole cell."""
        data = bytes(self.data[self.start : self.start + size])
        if len(data) < self.size:
            self.refuse()
        return data

    def refuse(self) -> None:
        raise InvalidBatch(f"a cell of {self.size} bytes lies outside the data", where=f"byte {self.start}")


def two_bytes(value: i64) -> i64:
    """The varint of a `value` in [ONE_BYTE, TWO_BYTES), low byte first."""
    return ((value << 1) & 0x7F) | 0x80 | ((value << 2) & 0x7F00)


def cell_size(size: i64) -> i64:
    """The encoded size of a cell of `size` bytes (or NULL) with its length."""
    if size < ONE_BYTE:
        if size < 0:
            return 1
        return size + 1
    if size < TWO_BYTES:
        return size + 2
    return varint_size(size) + size
