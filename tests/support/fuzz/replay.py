"""Send the batches of a failed run again, and say which request the broker fails on.

python -m support.fuzz.replay FILE [HOST:PORT]

Without an address it starts a broker of its own, with the topics of the run. Each batch has a connection of
its own; when the broker's log has a traceback, the requests of that batch are sent one by one.
"""

import base64
import json
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.base.errors import BarnabasError
from barnabas.protocol.exchange import decode_request
from support.fuzz.requests import Batch, framed
from support.fuzz.run import SETTINGS, LiveFuzz
from support.hostile.victim import Victim

_ANSWERED_WITHIN_S = 2.0
_READ_BYTES = 1 << 20


class Kept(NamedTuple):
    """The file of a failed run."""

    seed: int
    topic_ids: dict[str, bytes]
    batches: list[Batch]


def load(path: Path) -> Kept:
    first, *rest = path.read_text().splitlines()
    head = json.loads(first)
    batches = []
    for line in rest:
        number, frames, end = json.loads(line)
        batches.append(Batch(number, [base64.b64decode(one) for one in frames], base64.b64decode(end)))
    ids = {name: base64.b64decode(one) for name, one in head["topic_ids"].items()}
    return Kept(head["seed"], ids, batches)


def main(path: Path, address: str | None) -> int:
    kept = load(path)
    if address is not None:
        for batch in kept.batches:
            _send(address, batch.frames, batch.end)
        return 0
    with tempfile.TemporaryDirectory() as root, Victim(Path(root), settings=SETTINGS) as victim:
        with LiveFuzz(victim, seed=kept.seed, folder=Path(root)) as fuzz:
            fuzz.prepare()
        batches = [_with_ids(batch, kept.topic_ids, fuzz.words.topic_ids) for batch in kept.batches]
        return _find(victim, batches)


def _find(victim: Victim, batches: Iterable[Batch]) -> int:
    for batch in batches:
        before = _tracebacks(victim)
        _send(victim.address, batch.frames, batch.end)
        if _tracebacks(victim) == before:
            continue
        print(f"batch {batch.number} fails")
        for frame in batch.frames:
            before = _tracebacks(victim)
            _send(victim.address, [frame], b"")
            if _tracebacks(victim) != before:
                print(f"{_shown(frame)}\n{frame.hex()}\n{victim.log[-3000:]}")
                return 1
        print(f"no single request of it does:\n{victim.log[-3000:]}")
        return 1
    print("the broker served all batches")
    return 0


def _tracebacks(victim: Victim) -> int:
    return victim.log.count("Traceback") if victim.is_running else -1


def _shown(frame: bytes) -> str:
    try:
        request = decode_request(frame)
    except BarnabasError as error:
        return str(error)
    return f"version {request.version}: {request.body}"


def _with_ids(batch: Batch, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Batch:
    """Put the ids of today's topics where those of the failed run were."""

    def changed(data: bytes) -> bytes:
        for name, topic_id in old.items():
            data = data.replace(topic_id, bytes(new[name])) if name in new else data
        return data

    return Batch(batch.number, [changed(frame) for frame in batch.frames], changed(batch.end))


def _send(address: str, frames: list[bytes], end: bytes) -> None:
    """One connection after another, as in the run, and read until nothing comes any more."""
    host, _, port = address.rpartition(":")
    for frame in [b"".join(map(framed, frames)) + end] if end else map(framed, frames):
        with socket.create_connection((host, int(port)), timeout=_ANSWERED_WITHIN_S) as sock:
            try:
                sock.sendall(frame)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(_READ_BYTES):
                    pass
            except OSError:
                continue


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
