"""The client that makes the load: broker_load.c on librdkafka, compiled at run time and run as a process.

A loop in Python would be the bottleneck. The library is the one that confluent-kafka brings along, or else
the machine's own.
"""

import ctypes.util
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_suffix(".c")
RUN_WITHIN_S = 120
ANY_PARTITION = -1
# What the Java client has. librdkafka's own bound is a million, which is none.
IN_FLIGHT = 5
UNBOUNDED = 1_000_000


class NoLoad(Exception):
    """The load client cannot be built, or it failed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a producer or consumer did."""

    count: int
    bytes: int
    seconds: float
    # Of the client itself; 0 where nobody knows.
    cpu_seconds: float = 0.0

    @property
    def messages_per_s(self) -> float:
        return self.count / self.seconds

    @property
    def mb_per_s(self) -> float:
        return self.bytes / 1e6 / self.seconds


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Milliseconds."""

    p50: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True)
class Latency:
    """From when a message was due to when its reader had it, and to when its writer had the answer."""

    end_to_end: Quantiles
    acknowledged: Quantiles


class Load:
    """Made once; every call runs one client to its end."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise NoLoad("there is no C compiler, and the load client is written in C")
        self._program = directory / "broker_load"
        library = _library()
        command = [compiler, "-O2", "-pthread", str(SOURCE), "-o", str(self._program)]
        # The wheel's library needs others that lie beside it, which the linker need not see.
        command += [library, "-Wl,--allow-shlib-undefined", f"-Wl,-rpath,{Path(library).parent}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoLoad(f"{' '.join(command)}:\n{done.stderr}")

    def produce(
        self,
        address: str,
        topic: str,
        *,
        count: int,
        size: int,
        partition: int = ANY_PARTITION,
        settings: Mapping[str, object] | None = None,
    ) -> Done:
        return Done(**self._run(["produce", address, topic, partition, count, size], settings))

    def consume(
        self,
        address: str,
        topic: str,
        *,
        partitions: int,
        count: int,
        settings: Mapping[str, object] | None = None,
    ) -> Done:
        return Done(**self._run(["consume", address, topic, partitions, count], settings))

    def start_consuming(self, address: str, topic: str, *, count: int) -> "subprocess.Popen[bytes]":
        """A consumer of one partition that runs beside something else; whoever starts it ends it."""
        command = [str(self._program), "consume", address, topic, "1", str(count)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def latency(
        self,
        address: str,
        topic: str,
        *,
        rate: int,
        seconds: float,
        size: int = 100,
        in_flight: int = IN_FLIGHT,
    ) -> Latency:
        """A writer and a reader of partition 0, with linger.ms=0, at so many messages a second."""
        bound = {"max.in.flight": in_flight}
        found = self._run(["latency", address, topic, rate, seconds, size], bound)
        return Latency(Quantiles(**found["end_to_end"]), Quantiles(**found["acknowledged"]))

    def _run(self, arguments: list[object], settings: Mapping[str, object] | None) -> dict[str, Any]:
        command = [str(self._program), *map(str, arguments)]
        command += [f"{name}={value}" for name, value in (settings or {}).items()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_WITHIN_S, check=False)
        except subprocess.TimeoutExpired as late:
            said = (late.stderr or b"")[-500:]
            raise NoLoad(f"{' '.join(command)}: not done in {RUN_WITHIN_S} s; it said {said!r}") from None
        if done.returncode != 0:
            raise NoLoad(f"{' '.join(command)}: {done.stderr[-500:]}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def _library() -> str:
    spec = find_spec("confluent_kafka")
    if spec is not None and spec.origin is not None:
        beside = Path(spec.origin).parents[1] / "confluent_kafka.libs"
        for path in sorted(beside.glob("librdkafka-*")):
            return str(path)
    name = ctypes.util.find_library("rdkafka")
    if name is None:
        raise NoLoad("there is no librdkafka: install confluent-kafka, or the machine's librdkafka1")
    return f"-l:{name}"
