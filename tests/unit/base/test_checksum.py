"""Checksums that are computed while something else is done."""

import pytest
from crc32c import crc32c

from barnabas.base.checksum import Checksums, InlineChecksums, ThreadChecksums


@pytest.mark.parametrize("kind", [InlineChecksums, ThreadChecksums])
def test_each_end_has_the_checksum_of_its_begin(kind: type[InlineChecksums] | type[ThreadChecksums]) -> None:
    checksums: Checksums = kind()

    for size in (0, 1, 1000, 1 << 20):
        data = bytes(range(256)) * (size // 256 + 1)
        checksums.begin(memoryview(data)[:size])
        assert checksums.end() == crc32c(data[:size])

    if isinstance(checksums, ThreadChecksums):
        checksums.close()


def test_a_closed_one_leaves_no_thread_behind() -> None:
    checksums = ThreadChecksums()

    checksums.close()

    assert not checksums._thread.is_alive()
