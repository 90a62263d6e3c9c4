"""The golden vectors of Kafka's codec: tests/differential/kafka_vectors/README.md says what is in them."""

import json
import lzma
from collections import defaultdict
from functools import cache
from typing import Any

from support.kafka.sample import FIXTURES


@cache
def vector_lines() -> list[str]:
    """Each vector as Kafka's JSON library wrote it."""
    with lzma.open(FIXTURES / "vectors.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


@cache
def read_vectors() -> dict[str, dict[int, list[Any]]]:
    """By message and version."""
    vectors: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for line in vector_lines():
        vector = json.loads(line)
        vectors[vector["message"]][vector["version"]].append(vector)
    return vectors
