from barnabas.records.crc import crc32c_of


def test_the_crc_is_castagnolis() -> None:
    assert crc32c_of(b"123456789", 0, 9) == 0xE3069283


def test_only_the_range_is_covered_whatever_the_kind_of_buffer() -> None:
    for data in (b"xx123456789yy", bytearray(b"xx123456789yy"), memoryview(b"xx123456789yy")):
        assert crc32c_of(data, 2, 11) == 0xE3069283
