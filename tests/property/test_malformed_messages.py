"""Damaged messages of every kind and version decode to a value or raise Malformed, never anything else.

BARNABAS_FUZZ=1000000 makes a long run. Attempts are spread evenly over all messages and versions, and a
failure shows the seed that reproduces the damage.
"""

import random
import re
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest

from barnabas.base.errors import Malformed
from barnabas.protocol.schema.codec import decode, encode
from barnabas.protocol.schema.layout import message_layout
from barnabas.protocol.schema.struct import schema_of
from support.fuzz.damage import Sample, big_lies, lie, sample
from support.fuzz.mutations import attempts, mutate
from support.memory import peak_of
from support.wire.messages import all_versions

pytestmark = pytest.mark.kernel

ATTEMPTS = 8000
# A few random strings are very long; such samples would only make the run slow.
SAMPLE_BYTES_MAX = 4096
SAMPLES_EACH = 4

# Decoding allocates objects only for bytes that are there, regardless of any length field: this much per
# byte of the frame, and this much in any case. Three bytes can be a struct with an empty list: 180 bytes.
BYTES_PER_BYTE_MAX = 70
BYTES_AT_LEAST = 16 * 1024

WHERE = re.compile(r"(\w+ v\d+), [a-z0-9_\[\]. -]+, byte \d+")


@cache
def samples() -> list[Sample]:
    found = []
    for cls, version in all_versions():
        rng = random.Random(f"{cls.__name__} {version}")
        for _ in range(SAMPLES_EACH):
            one = sample(cls, version, rng)
            while len(one.data) > SAMPLE_BYTES_MAX:
                one = sample(cls, version, rng)
            found.append(one)
    return found


def damaged(count: int, seed: int) -> Iterator[tuple[Sample, bytes, str]]:
    pool = samples()
    rng = random.Random()
    # A stride that is coprime to the pool size visits every sample once before any is repeated.
    for attempt in range(count):
        rng.seed(seed * 1_000_000_007 + attempt)
        of = pool[attempt * 7919 % len(pool)]
        data = lie(rng, of) if attempt & 1 else mutate(rng, of.data)
        yield of, data, f"seed {seed}, attempt {attempt}"


def test_the_run_visits_every_message() -> None:
    visited = {id(of) for of, _, _ in damaged(len(samples()), 0)}

    assert len(visited) == len(samples())


def check_refusal(found: Malformed, of: Sample, about: str) -> None:
    place = WHERE.fullmatch(found.where)
    assert place is not None, f"{found.where!r} for {about}"
    assert place[1] == of.name, f"{found.where!r} for {about}"
    assert found.what not in ("", "does not decode"), about


def test_a_damaged_message_is_decoded_or_refused_with_its_reason_and_path() -> None:
    decoded = refused = 0
    for of, data, how in damaged(attempts(ATTEMPTS), 1):
        try:
            _, end = decode(of.cls, of.version, data)
        except Malformed as found:
            check_refusal(found, of, f"{how}, {of.name}: {data.hex()}")
            refused += 1
        except BaseException as wrong:
            raise AssertionError(f"{wrong!r} for {how}, {of.name}: {data.hex()}") from wrong
        else:
            assert 0 <= end <= len(data), f"{how}, {of.name}: {data.hex()}"
            decoded += 1

    assert decoded > 0
    assert refused > 0


def test_every_truncated_message_is_refused() -> None:
    """A message ends with its last field, so no prefix of it is a valid message."""
    for of in samples()[:: SAMPLES_EACH * 3]:
        for size in range(min(len(of.data), 200)):
            with pytest.raises(Malformed):
                decode(of.cls, of.version, of.data[:size])


def check_memory_to_decode(of: Sample, data: bytes, about: str) -> None:
    def work() -> None:
        with suppress(Malformed):
            decode(of.cls, of.version, data)

    limit = BYTES_AT_LEAST + BYTES_PER_BYTE_MAX * len(data)
    assert peak_of(work, limit) <= limit, f"{of.name}, {about}"


@pytest.fixture
def traced() -> Iterator[None]:
    for of in samples():
        decode(of.cls, of.version, of.data)  # compiles the decoder, which is cached
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_memory_is_bounded_by_the_frame_size_and_not_by_length_fields() -> None:
    for of in samples()[::SAMPLES_EACH]:
        # The versions in between would take long and differ little.
        if of.version not in (schema_of(of.cls).versions.first, schema_of(of.cls).versions.last):
            continue
        for data in big_lies(of):
            check_memory_to_decode(of, data, data.hex())


@pytest.mark.usefixtures("traced")
def test_memory_is_bounded_by_the_frame_size_with_the_smallest_items() -> None:
    for of in samples()[::SAMPLES_EACH]:
        for field in message_layout(of.cls, of.version).plain:
            if field.item is None or field.item.struct is None:
                continue
            message = of.cls(**{field.name: [field.item.struct()] * 200})

            check_memory_to_decode(of, encode(message, of.version), field.name)
