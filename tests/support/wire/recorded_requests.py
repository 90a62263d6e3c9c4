"""The recorded requests of real clients: tests/fixtures/recorded-requests.jsonl, a JSON array in each line.

Each line is [client, API key, version, frame in base64]. support.wire.record_requests writes the file.
"""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FIXTURE = Path(__file__).parents[2] / "fixtures" / "recorded-requests.jsonl"


class Recorded(NamedTuple):
    """One request as a client sent it, without its length."""

    client: str
    key: int
    version: int
    frame: bytes


def load_recorded(path: Path = FIXTURE) -> list[Recorded]:
    found = []
    for line in path.read_text().splitlines():
        client, key, version, frame = json.loads(line)
        found.append(Recorded(client, key, version, base64.b64decode(frame)))
    return found


def save_recorded(recorded: Iterable[Recorded], path: Path = FIXTURE) -> None:
    lines = [
        json.dumps([one.client, one.key, one.version, base64.b64encode(one.frame).decode()])
        for one in sorted(recorded)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
