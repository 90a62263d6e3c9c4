"""Damage valid bytes, to test decoders that must return a value or raise one declared error for any bytes.

A seed and a number of attempts define a run, so it is repeatable. BARNABAS_FUZZ=1000000 makes a long run.
The failure message has the seed of the attempt:

    attack(decode, samples, seed=1)                    # a few thousand damaged samples
    attack(decode, samples, seed=1, repair=sign)       # correct the checksum, to get past its check
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas.base.errors import Malformed
from support.scale import scaled

DEFAULT_ATTEMPTS = 3000
SOAK_ATTEMPTS_FACTOR = 50

# Boundary values of fields: signs, lengths, counts, unterminated varints.
EDGES = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\x7f\xff",
    b"\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many samples were decoded and how many refused."""

    decoded: int
    refused: int


def attempts(default: int = DEFAULT_ATTEMPTS) -> int:
    """Number of attempts of a test: BARNABAS_FUZZ, or `default`."""
    return scaled("BARNABAS_FUZZ", default, default * SOAK_ATTEMPTS_FACTOR)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Damage `data` in one to four places."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(_DAMAGES)(rng, data)
    return data


def attack(
    decode: Callable[[bytes], object],
    samples: Sequence[bytes],
    *,
    seed: int,
    count: int | None = None,
    repair: Callable[[bytes], bytes] = bytes,
    allowed: type[Exception] = Malformed,
) -> Outcome:
    """Decode damaged samples; fail, with the seed, on anything but a value or an `allowed` error."""
    decoded = refused = 0
    for attempt in range(attempts() if count is None else count):
        rng = random.Random(f"{seed}:{attempt}")
        sample = rng.randrange(len(samples))
        damaged = repair(mutate(rng, samples[sample]))
        try:
            decode(damaged)
        except allowed:
            refused += 1
        except BaseException as wrong:
            raise AssertionError(
                f"{type(wrong).__name__}: {wrong}\n"
                f"seed {seed}, attempt {attempt}, sample {sample}: {damaged.hex()}"
            ) from wrong
        else:
            decoded += 1
    return Outcome(decoded, refused)


def _flip_bit(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _overwrite(rng: random.Random, data: bytes) -> bytes:
    edge = rng.choice(EDGES)
    at = rng.randrange(len(data) + 1)
    return data[:at] + edge + data[at + len(edge) :]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice((rng.choice(EDGES), rng.randbytes(rng.randrange(1, 9)))) + data[at:]


def _delete(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(1, 9) :]


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start : start + rng.randrange(1, 65)] * 2 + data[start:]


# Bit flips and boundary values are more frequent: they keep most of the structure, so decoders get further.
_DAMAGES = (_flip_bit, _flip_bit, _flip_bit, _overwrite, _overwrite, _insert, _delete, _truncate, _repeat)
