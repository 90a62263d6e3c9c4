"""How fast is a log read from its start to its end and sent to a socket?

Ours asks the log for 1 MB after another and sends the ranges with os.sendfile(); the peer is the same loop
over the same file without a log. The file is in the page cache, and the log was opened after it was written,
so that it has to look up every offset and ask the kernel whether the bytes are in memory. The other end of
the connection is a process that throws everything away, and a turn ends when it has everything.
Expected cost of ours a megabyte: one look into the index and at a batch, nine probes, two objects.
"""

import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from struct import Struct

from barnabas.records.header import read_header
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.names import LOG, file_name
from barnabas.storage.warming import waiting
from log_turns import MB, Aimed, Run, fill_log, open_bench_log, sized_batch, take_turns, timed
from report import Options

RAW = "os.sendfile"
AIM = "0.90"
BATCH_BYTES = 16384
TOTAL = 256 * MB
QUICK_TOTAL = 32 * MB
ROUNDS = 51
QUICK_ROUNDS = 3

_SIZE = Struct(">q")
_DONE = b"."


def read_rows(directory: Path, options: Options) -> Iterator[Aimed]:
    total = QUICK_TOTAL if options.quick else TOTAL
    batch = sized_batch(BATCH_BYTES)
    path = directory / "read-0"
    end = fill_log(DiskFileSystem(), path, batch, total // BATCH_BYTES)
    per_byte = read_header(batch).count / BATCH_BYTES
    with drained_socket() as sock:
        runs = [
            sending_run(sock, total, RAW, raw_sender(sock, path / file_name(0, LOG), total)),
            sending_run(sock, total, "ours", log_sender(sock, path, end, per_byte)),
        ]
        turns = take_turns(runs, QUICK_ROUNDS if options.quick else ROUNDS)
    yield Aimed(turns.rate_row("read 1-MB ranges and send them", "ours", RAW, work=total), AIM)


def sending_run(sock: socket.socket, total: int, name: str, send_all: Callable[[], None]) -> Run:
    def run() -> dict[str, float]:
        took: dict[str, float] = {}
        with timed(took, name):
            sock.sendall(_SIZE.pack(total))
            send_all()
            assert sock.recv(1) == _DONE
        return took

    return run


def raw_sender(sock: socket.socket, path: Path, total: int) -> Callable[[], None]:
    file = path.open("rb")

    def send_all() -> None:
        for at in range(0, total, MB):
            send(sock.fileno(), file.fileno(), at, MB)

    return send_all


def log_sender(sock: socket.socket, path: Path, end: int, per_byte: float) -> Callable[[], None]:
    log = open_bench_log(DiskFileSystem(), path, clean_end=end)

    def send_all() -> None:
        offset = 0
        while offset < end:
            # As a broker does: now and then the kernel has dropped a page, even of a file just written.
            found = waiting(partial(log.read, offset, upto=end, bytes_max=MB))
            for part in found.ranges:
                send(sock.fileno(), part.fileno(), part.at, part.size)
            # A consumer knows where to go on from the batches. These are all alike, and fit exactly.
            offset += round(float(found.size) * per_byte)

    return send_all


def send(to: int, source: int, at: int, size: int) -> None:
    while size > 0:
        sent = os.sendfile(to, source, at, size)
        at += sent
        size -= sent


@contextmanager
def drained_socket() -> Iterator[socket.socket]:
    """A connection to a process that reads whatever it is told will come, and says so when it has it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        drain = multiprocessing.get_context("spawn").Process(target=drain_all, args=(port,), daemon=True)
        drain.start()
        sock, _ = server.accept()
    with sock:
        # Or the size in front would wait for an acknowledgement, in some turns and not in others.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield sock
    drain.join()


def drain_all(port: int) -> None:
    buffer = bytearray(MB)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        while head := sock.recv(_SIZE.size, socket.MSG_WAITALL):
            left: int = _SIZE.unpack(head)[0]
            while left > 0:
                # The kernel throws the bytes away without a copy: more of the time is the sender's.
                left -= sock.recv_into(buffer, min(left, MB), socket.MSG_TRUNC)
            sock.sendall(_DONE)
