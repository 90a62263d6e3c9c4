"""How fast and how light is our broker, beside Apache Kafka 4.3.0 on the same machine, with the same clients?

Both run at once, each with its defaults; they take turns, ours and theirs, after a round that does not count.
Our broker is the `barnabas` of the Python that runs this: install it with its kernels compiled, or put a
compiled copy on PYTHONPATH. Kafka needs Java, and Maven once, for the jars that Apache publishes. The clients
are librdkafka, driven by a program in C (broker_load.c), Kafka's own producer and consumer, and raw sockets.

Each question has a file of its own that says what is measured and what it should cost: broker_throughput.py,
broker_java.py, broker_requests.py, broker_latency.py, broker_start.py, broker_connections.py,
broker_partitions.py, broker_cold.py, broker_sendfile.py. `--only latency,start` asks only some of them.
Everything is written below the temporary directory (TMPDIR says where) and deleted at the end.
"""

import compileall
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

# The brokers under test are started the way the tests start them.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import barnabas
from barnabas.base.kernels import compiled_kernels
from broker_cold import cold_rows
from broker_connections import connection_rows
from broker_java import java_rows
from broker_latency import latency_rows
from broker_load import Load
from broker_pair import GB, find_kafka, running_pair
from broker_partitions import partition_rows
from broker_requests import request_rows
from broker_rows import Answer
from broker_scene import Scene
from broker_sendfile import sendfile_rows
from broker_start import start_rows
from broker_throughput import throughput_rows
from report import Options, machine, parse_options, report

# In this order: the throughput says what memory is idle, so it comes first.
QUESTIONS: dict[str, Callable[[Scene], Iterator[Answer]]] = {
    "throughput": throughput_rows,
    "java": java_rows,
    "requests": request_rows,
    "latency": latency_rows,
    "connections": connection_rows,
    "cold": cold_rows,
    "sendfile": sendfile_rows,
    "start": start_rows,
    "partitions": partition_rows,
}
ONLY = "--only"
DISK_BYTES = 12 * GB
QUICK_DISK_BYTES = 4 * GB


def main() -> int:
    names = asked_questions(sys.argv)
    options = parse_options(__doc__)
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if not compiled]
    print(f"broker:  {Path(barnabas.__file__).parent}")
    print(f"kernels: {'interpreted: ' + ', '.join(plain) if plain else 'all compiled'}")
    print("load:    " + " ".join(f"{one:.1f}" for one in os.getloadavg()) + " before the first question")
    require_space(QUICK_DISK_BYTES if options.quick else DISK_BYTES)
    raise_open_files()
    # As pip does at install: without it, every start would compile all of the source anew.
    compileall.compile_dir(Path(barnabas.__file__).parent, quiet=1)
    # As with Ctrl-C: both brokers are ended and the directory is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tools = find_kafka()
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        directory = Path(name)
        load = Load(directory)
        with running_pair(directory / "pair", tools) as pair:
            found, failed = ask_all(names, Scene(pair, load, directory, options.quick))
        show(found, failed, options)
    return 1 if failed else 0


def show(found: list[Answer], failed: list[str], options: Options) -> None:
    """All rows at once. Before the directory is deleted, because that takes a while."""
    report([one.shown() for one in found], replace(options, json=None))
    if options.json is not None:
        options.json.write_text(json.dumps([one.row.for_json() for one in found], indent=1) + "\n")
    missed = [one.row.question for one in found if one.is_missed]
    print(f"aims:    {sum(one.aim is not None for one in found) - len(missed)} met, {len(missed)} missed")
    print("load:    " + " ".join(f"{one:.1f}" for one in os.getloadavg()) + " after the last")
    if failed:
        print(f"failed:  {', '.join(failed)}")


def asked_questions(arguments: list[str]) -> list[str]:
    """Take `--only A,B` out of the arguments; what is left is what every benchmark has."""
    if ONLY not in arguments[:-1]:
        return list(QUESTIONS)
    at = arguments.index(ONLY)
    names = arguments[at + 1].split(",")
    del arguments[at : at + 2]
    unknown = set(names) - set(QUESTIONS)
    if unknown:
        raise SystemExit(f"{ONLY} {', '.join(sorted(unknown))}: there are only {', '.join(QUESTIONS)}")
    return names


def ask_all(names: list[str], scene: Scene) -> tuple[list[Answer], list[str]]:
    """All answers, and the questions that failed: one that fails is shown and does not silence the others."""
    found: list[Answer] = []
    failed = []
    for name in names:
        start = time.monotonic()
        try:
            for answer in QUESTIONS[name](scene):
                print(f"  {answer.line()}", file=sys.stderr, flush=True)
                found.append(answer)
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"  {name} took {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return found, failed


def require_space(needed: float) -> None:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < needed:
        where = tempfile.gettempdir()
        raise SystemExit(f"{where} has {free / GB:.1f} GB left and this needs {needed / GB:.0f} GB")


def raise_open_files() -> None:
    """A thousand connections are a thousand descriptors, here and in the brokers, which inherit the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
