"""Measure which files a request enters in a broker, and write docs/design/0018-request-paths.md.

    PYTHONPATH=src:tests python -m support.process.request_paths

writes the page. A process runs one broker from the sources of this tree, interpreted, because a profiler does
not see calls of compiled functions. Each request is sent several times, and the repetition that enters the
fewest files counts: the others meet a timer, or a buffer that has to grow.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "design" / "0018-request-paths.md"
PACKAGE = f"{SOURCE}/barnabas/"
# The modules that write responses to sockets.
NETWORK = f"{PACKAGE}server/network/"
# System calls that write a response.
WRITES = frozenset({"write", "writev", "send", "sendmsg", "sendfile"})
REPETITIONS = 5
# Between requests the broker becomes idle, as with a single client.
PAUSE_S = 0.2
TIMEOUT_S = 120
OPENING = """# 18. The path of a request

**Problem.** A request that passes through many small files is hard to follow and pays for every call.

**Choice.** A test (`tests/scenario/test_request_paths.py`) limits the files that a produce, a fetch, an
offset commit and a JoinGroup enter, and their calls. This page lists the files in the order in which a
request enters them, with the functions that it calls there, from the first byte of the request to the write
of its response. The requests are those of a single client of a broker with one node: one record, one
partition, one member. `python -m support.process.request_paths` writes this page again.

**What we gave up.** The counts are of interpreted code, the only kind that a profiler sees. They say how far
a reader has to go, not how long a request takes.
"""
TITLES = {
    "produce": "Produce: one record with acks=all",
    "fetch": "Fetch: one partition with records",
    "commit": "OffsetCommit: one partition, without a member",
    "join": "JoinGroup: the first member of a new group",
}


class RequestPath(NamedTuple):
    """The files that a request enters, in order, each with its functions, and the number of all calls."""

    files: dict[str, list[str]]
    calls: int


def measured_paths() -> dict[str, RequestPath]:
    """Measure all requests in a new process."""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT / 'tests'}", "PYTHONHASHSEED": "0"}
    environment.pop("BARNABAS_KERNELS", None)
    done = subprocess.run(
        [sys.executable, "-m", "support.process.request_paths", "measure"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: RequestPath(*path) for name, path in json.loads(done.stdout).items()}


def page(paths: dict[str, RequestPath]) -> str:
    lines = [OPENING]
    for name, path in paths.items():
        lines += [
            f"## {TITLES[name]}",
            "",
            f"{len(path.files)} files.",
            "",
            "| file | functions |",
            "| --- | --- |",
        ]
        for file, functions in path.files.items():
            lines.append(
                f"| [`{file}`](../../src/barnabas/{file}) | {', '.join(f'`{each}`' for each in functions)} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def files_on(text: str) -> dict[str, set[str]]:
    """Return the files that a page lists for each request."""
    found: dict[str, set[str]] = {}
    names = {title: name for name, title in TITLES.items()}
    for line in text.splitlines():
        if line.startswith("## "):
            listed = found.setdefault(names[line.removeprefix("## ")], set())
        elif line.startswith("| [`"):
            listed.add(line.split("`")[1])
    return found


def _short_name(function: str) -> str | None:
    """Return the name of a function without its class, and that of a class for its constructor."""
    holder, _, name = function.rpartition(".")
    if name.startswith("<"):
        # A comprehension or lambda is part of the function around it.
        return None
    return holder.rpartition(".")[2] if name == "__init__" else name


class _Profiler:
    """Records the calls into the package by all threads that start after it.

    A path ends with the write of the response. Whether later calls run before the client has the response is
    a race of two threads.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._calls: list[tuple[str, str]] = []
        self._calls_until_write = 0
        threading.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._is_on:
            return
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            self._calls.append((path.removeprefix(PACKAGE), frame.f_code.co_qualname))
        elif event == "c_call" and argument.__name__ in WRITES and path.startswith(NETWORK):
            self._calls_until_write = len(self._calls)

    def path_of(self, work: Callable[[], object]) -> RequestPath:
        self._calls.clear()
        self._calls_until_write = 0
        self._is_on = True
        work()
        self._is_on = False
        calls = self._calls[: self._calls_until_write]
        assert calls, "server/network did not write the response"
        files: dict[str, list[str]] = {}
        for file, function in calls:
            functions = files.setdefault(file, [])
            name = _short_name(function)
            if name is not None and name not in functions:
                functions.append(name)
        return RequestPath(files, len(calls))


class _Client:
    """One connection that sends request frames and reads whole responses."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._read(4))
        self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data

    def close(self) -> None:
        self._socket.close()


def _frame(key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, 1, 1) + b"x"
    return struct.pack(">i", len(head) + len(body)) + head + body


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


_PARTITION_OF_T = struct.pack(">i", 1) + _text(b"t") + struct.pack(">i", 1)


def _produce(number: int) -> bytes:
    from barnabas.records.builder import build_batch

    batch = bytes(build_batch([(int(time.time() * 1000), b"k", b"v", ())]))
    head = struct.pack(">hhi", -1, 1, 5000)
    return _frame(0, 7, head + _PARTITION_OF_T + struct.pack(">ii", 0, len(batch)) + batch)


def _fetch(number: int) -> bytes:
    head = struct.pack(">iiiib", -1, 0, 1, 1_000_000, 0)
    return _frame(1, 4, head + _PARTITION_OF_T + struct.pack(">iqi", 0, 0, 1_000_000))


def _commit(number: int) -> bytes:
    head = _text(b"offsets") + struct.pack(">i", -1) + _text(b"") + struct.pack(">q", -1)
    return _frame(8, 2, head + _PARTITION_OF_T + struct.pack(">iq", 0, 1) + _text(b""))


def _join(number: int) -> bytes:
    protocols = struct.pack(">i", 1) + _text(b"range") + struct.pack(">i", 4) + b"abcd"
    group = _text(b"group-%d" % number) + struct.pack(">ii", 6000, 6000)
    return _frame(11, 2, group + _text(b"") + _text(b"consumer") + protocols)


REQUESTS: dict[str, Callable[[int], bytes]] = {
    "produce": _produce,
    "fetch": _fetch,
    "commit": _commit,
    "join": _join,
}


def _measure() -> dict[str, RequestPath]:
    profiler = _Profiler()
    from barnabas.testing import Broker

    with Broker(topics=["t"]) as broker, closing(_Client(broker.bootstrap)) as client:
        # The first requests for a coordinator create its topic.
        for _ in range(5):
            client.send(_frame(10, 0, _text(b"offsets")))
            time.sleep(PAUSE_S)
        for make in REQUESTS.values():
            for number in range(3):
                client.send(make(number))
        found: dict[str, RequestPath] = {}
        for name, make in REQUESTS.items():
            paths = []
            for number in range(REPETITIONS):
                frame = make(100 + number)
                time.sleep(PAUSE_S)
                paths.append(profiler.path_of(lambda frame=frame: client.send(frame)))
            found[name] = min(paths, key=lambda path: (len(path.files), path.calls))
    return found


def _check_sources() -> None:
    from barnabas.base.kernels import compiled_kernels

    compiled = [name for name, is_compiled in compiled_kernels().items() if is_compiled]
    assert not compiled, f"compiled, so a profiler does not see their calls: {', '.join(compiled)}"


def main(words: list[str]) -> None:
    if words == ["measure"]:
        _check_sources()
        found: Any = _measure()
        print(json.dumps(found))
    else:
        PAGE.write_text(page(measured_paths()))


if __name__ == "__main__":
    main(sys.argv[1:])
