"""A way to a broker that is long: what is sent arrives later, and only so much of it is on its way at a time.

In a process of its own, so that it takes no turns from whoever is measured. The broker has to tell clients
the port of the way instead of its own: settings_for().
"""

import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HOST = "127.0.0.1"
# What Linux lets a connection have under way, as it comes.
WINDOW_BYTES = 4 << 20
_PIECE_BYTES = 1 << 18
_END_S = 30


def settings_for(port: int) -> dict[str, object]:
    return {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}


@contextmanager
def long_way(port: int, to_port: int, round_trip_ms: float, window: int = WINDOW_BYTES) -> Iterator[str]:
    """From one port to the other; gives the address."""
    command = [sys.executable, __file__, str(port), str(to_port), str(round_trip_ms), str(window)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield f"{HOST}:{port}"
        finally:
            process.kill()
            process.wait(_END_S)


class _Half:
    """One direction of a connection. What was delivered makes room when its sender would know of it."""

    def __init__(self, source: socket.socket, target: socket.socket, later_s: float, window: int) -> None:
        self._source, self._target = source, target
        self._later_s = later_s
        self._room = window
        self._changed = threading.Condition()
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._known: deque[tuple[float, int]] = deque()
        for work in (self._receive, self._send):
            threading.Thread(target=work, daemon=True).start()

    def _receive(self) -> None:
        data = b"to begin with"
        while data:
            room = self._wait_for_room()
            try:
                data = self._source.recv(min(room, _PIECE_BYTES))
            except OSError:
                data = b""
            with self._changed:
                self._room -= len(data)
                self._under_way.append((time.monotonic() + self._later_s, data))
                self._changed.notify_all()

    def _wait_for_room(self) -> int:
        with self._changed:
            while True:
                now = time.monotonic()
                while self._known and self._known[0][0] <= now:
                    self._room += self._known.popleft()[1]
                if self._room > 0:
                    return self._room
                self._changed.wait(self._known[0][0] - now if self._known else None)

    def _send(self) -> None:
        # Whatever goes wrong, the other half finds out by itself.
        with suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._under_way)
                    due, data = self._under_way.popleft()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    self._target.shutdown(socket.SHUT_WR)
                    return
                self._target.sendall(data)
                with self._changed:
                    self._known.append((time.monotonic() + self._later_s, len(data)))
                    self._changed.notify_all()
        with suppress(OSError):
            self._source.shutdown(socket.SHUT_RDWR)


def _serve(port: int, to_port: int, round_trip_ms: float, window: int) -> None:
    with socket.create_server((HOST, port)) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            client, _ = server.accept()
            try:
                broker = socket.create_connection((HOST, to_port))
            except OSError:
                client.close()
                continue
            for one in (client, broker):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _Half(client, broker, round_trip_ms / 2000, window)
            _Half(broker, client, round_trip_ms / 2000, window)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
