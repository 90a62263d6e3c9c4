from random import Random

import pytest

from barnabas.storage.cleaner.key_hash import HashSecret, hash_key
from barnabas.storage.cleaner.key_map import NOT_FOUND, SLOT_SIZE, KeyMap

pytestmark = pytest.mark.kernel

SECRET = bytes(range(16))

# From the reference implementation of SipHash-2-4 with 128 bits: hashes of b"", b"\0", b"\0\1"... by length.
REFERENCE = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    3: "9c70b60c5267a94e5f33b6b02985ed51",
    4: "f88164c12d9c8faf7d0f6e7c7bcd5579",
    5: "1368875980776f8854527a07690e9627",
    6: "14eeca338b208613485ea0308fd7a15e",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
}


def small_map(keys: int) -> KeyMap:
    """A map with room for exactly this number of keys."""
    return KeyMap((keys + 1) * SLOT_SIZE, SECRET, load_factor=1.0)


@pytest.mark.parametrize("size", REFERENCE)
def test_keys_are_hashed_as_the_reference_does_but_for_two_bits(size: int) -> None:
    around = b"xx" + bytes(range(size)) + b"yyyyyyyyy"

    first, second = hash_key(HashSecret(SECRET), around, 2, 2 + size)

    expected = bytes.fromhex(REFERENCE[size])
    bits = [int.from_bytes(expected[:8], "little"), int.from_bytes(expected[8:], "little")]
    assert [first, second] == [word & ~(1 << 63) for word in bits]


def test_another_secret_gives_other_hashes() -> None:
    assert hash_key(HashSecret(SECRET), b"key", 0, 3) != hash_key(HashSecret(bytes(16)), b"key", 0, 3)


def test_the_last_offset_that_was_put_is_found() -> None:
    found = KeyMap(1 << 16, SECRET)

    assert found.put(b"a", 0)
    assert found.put(b"", 7)
    assert found.put(b"a", 9)

    assert (found.get(b"a"), found.get(b""), found.get(b"b")) == (9, 7, NOT_FOUND)
    assert found.count == 2


def test_a_full_map_refuses_new_keys_and_takes_known_ones() -> None:
    found = small_map(keys=3)
    for offset, key in enumerate((b"a", b"b", b"c")):
        assert found.put(key, offset)

    assert not found.put(b"d", 3)
    assert found.put(b"b", 4)

    assert [found.get(key) for key in (b"a", b"b", b"c", b"d")] == [0, 4, 2, NOT_FOUND]


def test_the_load_factor_leaves_room() -> None:
    found = KeyMap(100 * SLOT_SIZE, SECRET, load_factor=0.9)

    taken = [found.put(b"%d" % number, number) for number in range(100)]

    assert taken == [True] * 90 + [False] * 10
    assert found.capacity == 90
    assert found.utilization == pytest.approx(0.9)


def test_a_map_that_grows_forgets_nothing() -> None:
    found = KeyMap(200_000 * SLOT_SIZE, SECRET)
    rng = Random(4)
    expected: dict[bytes, int] = {}

    for offset in range(20_000):
        key = b"%d" % rng.randrange(8_000)
        expected[key] = offset
        assert found.put(key, offset)

    assert found.count == len(expected) > 4096
    assert {key: found.get(key) for key in expected} == expected


def test_a_cleared_map_is_like_new() -> None:
    found = KeyMap(1 << 16, SECRET)
    found.put(b"a", 5)
    found.latest_offset = 5

    found.clear()

    assert (found.get(b"a"), found.count, found.latest_offset, found.utilization) == (NOT_FOUND, 0, -1, 0.0)


def test_offsets_of_any_size_fit() -> None:
    found = KeyMap(1 << 16, SECRET)
    largest = (1 << 63) - 2

    found.put(b"k", largest)

    assert found.get(b"k") == largest


def test_memory_for_no_key_fails_an_assertion() -> None:
    with pytest.raises(AssertionError, match="24 bytes hold no key"):
        KeyMap(SLOT_SIZE, SECRET)
