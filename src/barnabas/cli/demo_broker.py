"""The broker's part of the tour: start one as a user does, and use the client and a tool with it."""

import subprocess
import sys
import tempfile
import time
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import Message

TOPIC: Final = "letters"
_READY: Final = "ready: "
_TIMEOUT_MS: Final = 30_000


class DemoFailed(BarnabasError):
    """The broker of the tour did not do what it was to show."""


def show_broker(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as directory:
        command = [*_barnabas("up"), "--dir", directory, "--port", "0", "--log-level", "warning"]
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line.startswith(_READY):
                    raise DemoFailed("the broker did not start")
                print(f"\na broker: serves after {(time.monotonic() - began) * 1000:.0f} ms, {line.strip()}")
                address = line.removeprefix(_READY).strip()
                _write_and_read(address, count)
                _show_tool(address)
            finally:
                process.terminate()
        print(f"  stopped cleanly: exit code {process.returncode}")


def _barnabas(command: str) -> list[str]:
    return [sys.executable, "-m", "barnabas.cli.main", command]


def _write_and_read(address: str, count: int) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topic(TOPIC, partitions=1)
    began = time.monotonic()
    with Producer(bootstrap_servers=address) as producer:
        deliveries = [producer.send(TOPIC, b"from the castle", key=b"to %d" % at) for at in range(count)]
        producer.flush()
        for delivery in deliveries:
            delivery.result()
    written = time.monotonic()
    with Consumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign_topic(TOPIC)
        messages: list[Message] = []
        while len(messages) < count:
            some = consumer.batch(count - len(messages), timeout_ms=_TIMEOUT_MS)
            if not some:
                raise DemoFailed(f"{len(messages)} of {count} records were read")
            messages += some
    read = time.monotonic()
    print(
        f"  the client: {len(messages)} records produced with acks=all in {(written - began) * 1000:.0f} ms,"
        f" consumed in {(read - written) * 1000:.0f} ms"
    )
    if messages:
        last = messages[-1]
        print(f"  the last: offset {last.offset}, {last.key!r}: {last.value!r}")


def _show_tool(address: str) -> None:
    words = ["--bootstrap-server", address, "--topic", TOPIC]
    done = subprocess.run(
        [*_barnabas("get-offsets"), *words], capture_output=True, text=True, timeout=_TIMEOUT_MS / 1000
    )
    if done.returncode != 0:
        raise DemoFailed(f"get-offsets: {done.stderr.strip()}")
    print(f"  a tool: barnabas get-offsets {' '.join(words)}\n    {done.stdout.strip()}")
