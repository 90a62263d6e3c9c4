"""How fast are transactions of our broker, beside Apache Kafka 4.3.0 on the same machine?

The same load for both, from one process with raw sockets (transactions_load.py), in turns, after a round
that does not count. Both have the settings of transactions_pair.py and Kafka's defaults otherwise. Each
question has a file that says what is measured and what it should cost: transactions_speed.py (speed and
unpaused), transactions_latency.py, transactions_seen.py, transactions_reading.py. `--only speed,reading`
asks only some of them; `--twice` has a Kafka on both sides, which shows how far from 1 a ratio is by chance.
"""

import compileall
import json
import os
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
from broker_pair import find_kafka
from broker_rows import Answer
from report import Options, machine, parse_options, report
from transactions_latency import latency_rows
from transactions_pair import Scene, note
from transactions_reading import reading_rows
from transactions_seen import seen_rows
from transactions_speed import speed_rows, unpaused_rows

QUESTIONS: dict[str, Callable[[Scene], Iterator[Answer]]] = {
    "speed": speed_rows,
    "latency": latency_rows,
    "seen": seen_rows,
    "reading": reading_rows,
    "unpaused": unpaused_rows,
}
# It has brokers of its own. A quick run asks it only by name.
SLOW_TO_START = {"unpaused"}
ONLY = "--only"
TWICE = "--twice"


def main() -> int:
    asked = asked_questions(sys.argv)
    twice = TWICE in sys.argv
    if twice:
        sys.argv.remove(TWICE)
    options = parse_options(__doc__)
    names = asked or [name for name in QUESTIONS if not (options.quick and name in SLOW_TO_START)]
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if not compiled]
    print(f"kernels: {'interpreted: ' + ', '.join(plain) if plain else 'all compiled'}")
    print("load:    " + " ".join(f"{one:.1f}" for one in os.getloadavg()) + " before the first question")
    if twice:
        print("ours:    Kafka as well, to see what chance does")
    # As pip does at install: without it, every start would compile all of the source anew.
    compileall.compile_dir(Path(barnabas.__file__).parent, quiet=1)
    # As with Ctrl-C: both brokers are ended and the directory is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        scene = Scene(find_kafka(), Path(name), quick=options.quick, twice=twice)
        try:
            found, failed = ask_all(names, scene)
        finally:
            scene.close()
    show(found, failed, options)
    return 1 if failed else 0


def asked_questions(arguments: list[str]) -> list[str]:
    """Take `--only A,B` out of the arguments, if it is there; what is left is what every benchmark has."""
    if ONLY not in arguments[:-1]:
        return []
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
                note(answer.line())
                found.append(answer)
        except Exception:
            traceback.print_exc()
            failed.append(name)
        note(f"{name} took {time.monotonic() - start:.0f} s")
    return found, failed


def show(found: list[Answer], failed: list[str], options: Options) -> None:
    if found:
        report([one.shown() for one in found], replace(options, json=None))
    if options.json is not None:
        options.json.write_text(json.dumps([one.row.for_json() for one in found], indent=1) + "\n")
    missed = sum(one.is_missed for one in found)
    print(f"aims:    {sum(one.aim is not None for one in found) - missed} met, {missed} missed")
    if failed:
        print(f"failed:  {', '.join(failed)}")


if __name__ == "__main__":
    sys.exit(main())
