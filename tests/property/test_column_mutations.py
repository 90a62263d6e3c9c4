"""Damaged batches read as columns give rows or Malformed, as the record decoder does, compiled or not."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import barnabas
from barnabas.base.errors import Malformed
from barnabas.base.kernels import compiled_kernels
from barnabas.records.builder import build_batch
from barnabas.records.columns_read import decode_columns, decode_fetched
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.decode import decode_batch
from barnabas.records.header import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_AT,
    CRC_AT,
    HEADER_SIZE,
    Codec,
    crc32c_of,
    read_header,
)
from support.fuzz.mutations import attack, attempts, mutate

pytestmark = pytest.mark.kernel

# Small, so that a damaged size field does not make the run slow.
LIMIT = 1 << 20
COMPARED = 1500


def sample(codec: Codec, count: int, **options: Any) -> bytes:
    rng = random.Random(count)
    records = [
        (
            1_700_000_000_000 + index * 13,
            None if index % 5 == 0 else b"key-%d" % index,
            None if index % 7 == 3 else rng.randbytes(index % 40),
            [("trace", rng.randbytes(8)), ("ü", None)] if index % 3 == 0 else [],
        )
        for index in range(count)
    ]
    return build_batch(records, codec=codec, **options)


def samples(codec: Codec) -> list[bytes]:
    own = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 5, "transactional": True}
    abort = build_control_batch(
        ControlType.ABORT, bytes(6), timestamp=1, leader_epoch=1, producer_id=7, producer_epoch=1
    )
    return [sample(codec, 1), sample(codec, 3), sample(codec, 40), sample(codec, 5, **own), abort]


def sign(data: bytes) -> bytes:
    """Correct length and CRC, so that the decoder gets to the damage after them."""
    if len(data) < HEADER_SIZE:
        return data
    whole = bytearray(data)
    whole[BATCH_LENGTH_AT : BATCH_LENGTH_AT + 4] = (len(whole) - 12).to_bytes(4, "big")
    whole[CRC_AT : CRC_AT + 4] = crc32c_of(whole, ATTRIBUTES_AT, len(whole)).to_bytes(4, "big")
    return bytes(whole)


def read(data: bytes) -> pa.RecordBatch:
    rows = decode_fetched(data, aborted=[(7, 0)], from_offset=2, limit=LIMIT).rows
    rows.validate(full=True)
    whole = decode_columns(data, skip_control=False, limit=LIMIT, views=True)
    whole.validate(full=True)
    return whole


@pytest.mark.parametrize("codec", Codec)
def test_a_damaged_batch_becomes_rows_or_is_refused(codec: Codec) -> None:
    outcome = attack(read, samples(codec), seed=codec, repair=sign)

    assert outcome.decoded > 0
    assert outcome.refused > 0


@pytest.mark.parametrize("codec", Codec)
def test_damaged_buffers_of_many_batches_become_rows_or_are_refused(codec: Codec) -> None:
    outcome = attack(read, [b"".join(samples(codec))], seed=100 + codec)

    assert outcome.refused > 0


def objects_of(data: bytes) -> list[tuple[Any, ...]] | None:
    """The record decoder's result, None if it refuses. Unlike columns, it needs at least one batch."""
    if not data:
        return []
    try:
        header = read_header(data)
        if header.size != len(data) or header.base_offset < 0 or header.last_offset_delta < 0:
            return None
        records = decode_batch(data, limit=LIMIT)
    except Malformed:
        return None
    return [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in records]


def columns_of(data: bytes) -> list[tuple[Any, ...]] | None:
    """The rows as columns; None if they are refused."""
    try:
        rows = decode_columns(data, skip_control=False, limit=LIMIT)
    except Malformed:
        return None
    times = rows.column("timestamp").cast(pa.int64()).to_pylist()
    headers = [
        tuple((one["key"], one["value"]) for one in some) for some in rows.column("headers").to_pylist()
    ]
    offsets, keys, values = (rows.column(name).to_pylist() for name in ("offset", "key", "value"))
    return list(zip(offsets, times, keys, values, headers, strict=True))


@pytest.mark.parametrize("codec", Codec)
def test_columns_and_record_decoder_agree_on_damaged_batches(codec: Codec) -> None:
    whole = samples(codec)
    accepted = 0
    for attempt in range(attempts(COMPARED)):
        rng = random.Random(attempt)
        damaged = sign(mutate(rng, rng.choice(whole)))

        columns = columns_of(damaged)

        assert columns == objects_of(damaged), f"attempt {attempt}: {damaged.hex()}"
        accepted += columns is not None
    assert accepted > 0


def digests(count: int) -> list[str]:
    """A line for each damaged sample: a digest of its rows, or the error text."""
    lines = []
    for codec in Codec:
        whole = samples(codec)
        for attempt in range(count):
            rng = random.Random(f"{codec}:{attempt}")
            damaged = sign(mutate(rng, rng.choice(whole)))
            try:
                rows = decode_columns(damaged, skip_control=False, aborted=[(7, 3)], limit=LIMIT)
            except Malformed as refused:
                lines.append(f"{type(refused).__name__}: {refused}")
            else:
                content = repr(rows.drop_columns(["timestamp"]).to_pylist()).encode()
                lines.append(hashlib.sha256(content).hexdigest())
    return lines


@pytest.mark.skipif(not all(compiled_kernels().values()), reason="nothing here is compiled")
def test_compiled_and_interpreted_kernels_give_the_same_answers(tmp_path: Path) -> None:
    package = Path(next(iter(barnabas.__path__)))
    shutil.copytree(
        package, tmp_path / "barnabas", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    )
    here = Path(__file__)
    script = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(here.parent)!r}, {str(here.parents[1])!r}]\n"
        f"import json, {here.stem} as test\n"
        "assert not any(test.compiled_kernels().values())\n"
        "print(json.dumps(test.digests(300)))"
    )

    answer = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(answer.stdout) == digests(300)
