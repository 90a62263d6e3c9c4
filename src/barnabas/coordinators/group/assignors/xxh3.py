"""64-bit XXH3 without a seed, which Kafka uses for metadata hashes.

In plain Python, because it is needed only when topics change. Short inputs have their own algorithms by
length; long ones are accumulated in eight lanes, 64 bytes (a stripe) at a time.
"""

from operator import xor
from struct import Struct, unpack_from
from typing import Final

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_MASK: Final = 2**64 - 1
_LOW: Final = 2**32 - 1
_P32_1: Final = 0x9E3779B1
_P32_2: Final = 0x85EBCA77
_P32_3: Final = 0xC2B2AE3D
_P64_1: Final = 0x9E3779B185EBCA87
_P64_2: Final = 0xC2B2AE3D27D4EB4F
_P64_3: Final = 0x165667B19E3779F9
_P64_4: Final = 0x85EBCA77C2B2AE63
_P64_5: Final = 0x27D4EB2F165667C5
_AVALANCHE: Final = 0x165667919E3779F9
_SHORT: Final = 0x9FB21C651E98DF25

_LANES: Final = 8
_STRIPE: Final = 64
_BLOCK_STRIPES: Final = 16
_BLOCK: Final = _STRIPE * _BLOCK_STRIPES
_START: Final = (_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1)
_EIGHT: Final = Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """The unsigned hash, as in the specification."""
    length = len(data)
    if length > 240:
        return _long(data)
    if length > 128:
        return _up_to_240(data)
    if length > 16:
        return _up_to_128(data)
    if length > 8:
        return _up_to_16(data)
    if length > 3:
        return _up_to_8(data)
    return _up_to_3(data)


def _word(data: bytes, at: int) -> int:
    word: int = unpack_from("<Q", data, at)[0]
    return word


def _half(data: bytes, at: int) -> int:
    half: int = unpack_from("<I", data, at)[0]
    return half


def _folded(one: int, other: int) -> int:
    product = one * other
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value &= _MASK
    value ^= value >> 37
    value = value * _AVALANCHE & _MASK
    return value ^ (value >> 32)


def _avalanche_of_64(value: int) -> int:
    value ^= value >> 33
    value = value * _P64_2 & _MASK
    value ^= value >> 29
    value = value * _P64_3 & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _up_to_3(data: bytes) -> int:
    if not data:
        return _avalanche_of_64(_word(_SECRET, 56) ^ _word(_SECRET, 64))
    length = len(data)
    combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
    return _avalanche_of_64(combined ^ _half(_SECRET, 0) ^ _half(_SECRET, 4))


def _up_to_8(data: bytes) -> int:
    length = len(data)
    both = _half(data, length - 4) + (_half(data, 0) << 32)
    value = both ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = value * _SHORT & _MASK
    value ^= (value >> 35) + length
    value = value * _SHORT & _MASK
    return value ^ (value >> 28)


def _up_to_16(data: bytes) -> int:
    length = len(data)
    low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
    high = _word(data, length - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(length + swapped + high + _folded(low, high))


def _mixed(data: bytes, at: int, secret_at: int) -> int:
    """Mix 16 bytes of data with 16 bytes of the secret."""
    low, high = unpack_from("<2Q", data, at)
    key_low, key_high = unpack_from("<2Q", _SECRET, secret_at)
    return _folded(low ^ key_low, high ^ key_high)


def _up_to_128(data: bytes) -> int:
    length = len(data)
    total = length * _P64_1
    # Pairs of 16 bytes, from both ends towards the middle.
    for pair in range((length - 1) // 32 + 1):
        total += _mixed(data, 16 * pair, 32 * pair)
        total += _mixed(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total)


def _up_to_240(data: bytes) -> int:
    length = len(data)
    total = length * _P64_1
    for number in range(8):
        total += _mixed(data, 16 * number, 16 * number)
    total = _avalanche(total)
    for number in range(8, length // 16):
        total += _mixed(data, 16 * number, 16 * (number - 8) + 3)
    return _avalanche(total + _mixed(data, length - 16, 119))


# The concatenated keys of a block's stripes: each stripe's keys start one word after those of the previous
# one.
_KEYS: Final = [
    _word(_SECRET, 8 * (stripe + lane)) for stripe in range(_BLOCK_STRIPES) for lane in range(_LANES)
]
_SCRAMBLING: Final = _EIGHT.unpack_from(_SECRET, 128)
_KEYS_OF_LAST: Final = list(_EIGHT.unpack_from(_SECRET, 121))


def _long(data: bytes) -> int:
    length = len(data)
    lanes = list(_START)
    # The last stripe, which may overlap the one before it, always covers the end of the data.
    blocks, rest = divmod(length - 1, _BLOCK)
    for number in range(blocks):
        _add(lanes, data, number * _BLOCK, _BLOCK_STRIPES, _KEYS)
        for lane, key in enumerate(_SCRAMBLING):
            value = lanes[lane]
            lanes[lane] = (value ^ (value >> 47) ^ key) * _P32_1 & _MASK
    _add(lanes, data, blocks * _BLOCK, rest // _STRIPE, _KEYS)
    _add(lanes, data, length - _STRIPE, 1, _KEYS_OF_LAST)
    total = length * _P64_1
    merging = _EIGHT.unpack_from(_SECRET, 11)
    for lane in range(0, _LANES, 2):
        total += _folded(lanes[lane] ^ merging[lane], lanes[lane + 1] ^ merging[lane + 1])
    return _avalanche(total)


def _add(lanes: list[int], data: bytes, at: int, stripes: int, keys: list[int]) -> None:
    """Accumulate stripes of a block. Addition is commutative, so this sums lane by lane instead of stripe by
    stripe."""
    words = unpack_from(f"<{stripes * _LANES}Q", data, at)
    products = [(word & _LOW) * (word >> 32) for word in map(xor, words, keys)]
    for lane in range(_LANES):
        # Each lane adds the products of its own words and the plain words of its neighbour.
        lanes[lane] = (lanes[lane] + sum(products[lane::_LANES]) + sum(words[lane ^ 1 :: _LANES])) & _MASK
