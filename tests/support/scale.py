"""How much a test tries: a little in `make test`, a lot in `make soak`, or what an environment variable says.

A test that scales is marked `scaled`, so that `make soak` runs it again with BARNABAS_SOAK=1.
"""

import os
from typing import TypeVar

import pytest

N = TypeVar("N", int, float)

SOAK_SEEDS_FACTOR = 20


def is_soak() -> bool:
    return bool(os.environ.get("BARNABAS_SOAK"))


def scaled(variable: str, short: N, soak: N) -> N:
    """Return the value of `variable` if it is set; `soak` in `make soak`, and `short` otherwise."""
    if variable in os.environ:
        return type(short)(os.environ[variable])
    return soak if is_soak() else short


def seeds(short: int, always: tuple[int, ...] = ()) -> list[object]:
    """Seeds to parametrize a test with: BARNABAS_SEED replays one, BARNABAS_SEEDS says how many to try.

    `always` are seeds that once failed.
    """
    if "BARNABAS_SEED" in os.environ:
        return [int(os.environ["BARNABAS_SEED"])]
    count = scaled("BARNABAS_SEEDS", short, short * SOAK_SEEDS_FACTOR)
    return [pytest.param(seed, marks=pytest.mark.scaled) for seed in sorted({*range(count), *always})]
