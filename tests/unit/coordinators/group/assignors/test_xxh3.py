"""XXH3 where its ways meet: short inputs are hashed by length, long ones in blocks of 1,024 bytes.

The numbers are those of the library that Kafka uses.
"""

import pytest

from barnabas.coordinators.group.assignors.xxh3 import xxh3_64


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0xE12EF9D2EB86CEEB),
        (3, 0xB7391E018153D37A),
        (4, 0x43DE45B7450A6563),
        (8, 0xBCB3564EA273195D),
        (9, 0x388F1DAB6E174F79),
        (16, 0x9A9A7C8AF11CB0D1),
        (17, 0x6331A7347274566F),
        (128, 0x4388A1A31A919C42),
        (129, 0x619DC1115E4D15AD),
        (240, 0x880604936179A23B),
        (241, 0xF6ECCCEB68535F08),
        (1024, 0xDF9DE2EBC1670AC5),
        (1025, 0xF14FF968D7318F7F),
        (3000, 0x0094F5EE9C4ECF16),
    ],
)
def test_hashes_equal_those_of_kafkas_library(length: int, expected: int) -> None:
    data = bytes((31 * at * at + 7 * at + length) % 256 for at in range(length))

    assert xxh3_64(data) == expected
