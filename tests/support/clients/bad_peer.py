"""Connections that do as they please, and what the broker makes of them: its log and its memory."""

import socket
import time
from itertools import count
from pathlib import Path

from support.clients.stage import wait_until

_NUMBERS = count()


class BadPeer:
    """One connection; bytes go out as they are."""

    def __init__(self, address: str, *, receive_buffer_bytes: int | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.socket()
        if receive_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        # An address of its own, so that no two peers are ever called the same: ports are used again.
        number = next(_NUMBERS)
        self._socket.bind((f"127.1.{number // 250}.{number % 250 + 1}", 0))
        self._socket.connect((host, int(port)))
        self.name = "{}:{}".format(*self._socket.getsockname())

    def send(self, data: bytes) -> bool:
        """False if the broker has closed the connection."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def send_until_stuck(self, data: bytes, *, bytes_max: int, stuck_after_s: float) -> int:
        """Send it again and again until the broker takes no more, or closes; how many bytes it took."""
        self._socket.settimeout(stuck_after_s)
        sent = 0
        while sent < bytes_max:
            try:
                sent += self._socket.send(data)
            except (TimeoutError, BrokenPipeError, ConnectionResetError):
                break
        return sent

    def read_to_end(self, *, within_s: float) -> bytes:
        """Everything that comes until the broker closes the connection; AssertionError if it does not."""
        deadline = time.monotonic() + within_s
        received = b""
        while True:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                piece = self._socket.recv(65536)
            except ConnectionResetError:
                return received
            except TimeoutError:
                raise AssertionError(f"the connection is not closed within {within_s} seconds") from None
            if not piece:
                return received
            received += piece

    def close(self) -> None:
        self._socket.close()


def lines_with(output: Path, words: str) -> list[str]:
    return [line for line in output.read_text(errors="replace").splitlines() if words in line]


def lines_about(output: Path, peer: str) -> list[str]:
    """What the broker logged about a peer."""
    return lines_with(output, f"peer={peer} ")


def wait_for_line(output: Path, peer: str) -> str:
    """The one line about a peer, once it is there."""
    wait_until(lambda: lines_about(output, peer) != [], f"a line about {peer}")
    [line] = lines_about(output, peer)
    return line


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no resident memory")


def open_files(pid: int) -> int:
    """How many descriptors a process has; a connection that is closed has none."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
