"""`barnabas sim`: run simulated clusters under faults, and show a run again.

Kafka has no such tool. `run` takes seeds, each of which stands for a topology, a load and a schedule of
faults; `replay` prints the timeline of one.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from barnabas.cli.argument_parser import Misuse

SEEDS_DEFAULT = "0..100"


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="run|replay")
    run_parser = actions.add_parser("run", help="run many seeds and report violations")
    run_parser.add_argument(
        "--seeds",
        default=SEEDS_DEFAULT,
        metavar="A..B",
        help=f"seeds from A to B-1 (default: {SEEDS_DEFAULT})",
    )
    run_parser.add_argument("--workers", type=int, default=1, help="number of processes (default: 1)")
    run_parser.add_argument(
        "--save", type=Path, metavar="DIR", help="shrink each failing run and store its schedule here"
    )
    replay_parser = actions.add_parser("replay", help="print the timeline of one run")
    replay_parser.add_argument("which", metavar="SEED|FILE", help="a seed, or a stored schedule")


def run(options: Namespace) -> int:
    from barnabas.sim.campaign import campaign, load, timeline
    from barnabas.sim.quorum.run import random_spec, run_quorum

    if options.action == "replay":
        which = options.which
        try:
            spec = random_spec(int(which)) if which.isdigit() else load(Path(which))
        except (ValueError, KeyError, TypeError) as error:
            raise Misuse(f"{which}: not a stored schedule: {error}") from None
        outcome = run_quorum(spec)
        for line in timeline(outcome):
            print(line)
        return 1 if outcome.violations else 0
    if options.workers < 1:
        raise Misuse(f"--workers {options.workers}: must be at least 1")
    total = campaign(_seeds(options.seeds), workers=options.workers, save=options.save, say=_say)
    return 1 if total.failures else 0


def _say(line: str) -> None:
    print(line, flush=True)


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    if not dots or not first.isdigit() or not last.isdigit() or int(first) >= int(last):
        raise Misuse(f"--seeds {text}: expected A..B with A below B")
    return range(int(first), int(last))
