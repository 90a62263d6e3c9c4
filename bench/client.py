"""How fast is our client, beside aiokafka and confluent-kafka, with the same broker in the same run?

The broker is ours, in a process of its own; each client runs in a fresh process (bench/client_runs.py), one
after the other, in turns. With two cores, client and broker have one each, but librdkafka has threads beside
Python's. What it should cost: a record that is sent is one call, one hash or none, and some hundred bytes
copied twice; one that is read is one object. An Arrow table costs nothing for each record but the compiled
loop over its bytes, so what remains is the socket: about a gigabyte a second on loopback.

    python bench/client.py [--quick] [--json FILE] [--only TEXT]    # TEXT: questions that contain it
"""

import compileall
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# The broker under test is started the way the tests start it.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import barnabas
from barnabas.base.kernels import compiled_kernels
from broker_rows import Answer, more_is_better
from report import Options, machine, parse_options, report
from support.process.our_broker import OurBroker

ROUNDS = 3
QUICK_ROUNDS = 1
# What a run may take before it is given up.
RUN_S_MAX = 300
ONLY = "--only"
# Consumers read COUNT records after the first answer, which has up to 200,000 if they are compressed.
SPARE_RECORDS = 300_000
PEERS = {
    "aiokafka_produce": "aiokafka",
    "aiokafka_consume": "aiokafka",
    "aiokafka_consume_lists": "aiokafka",
    "confluent_produce": "confluent",
    "confluent_consume_lists": "confluent",
    "confluent_consume_values": "confluent, values read",
}
CHILD = Path(__file__).with_name("client_runs.py")
# Deleted as soon as they are not needed: the disk need not hold every run.
BROKER = {"log.segment.delete.delay.ms": 0, "log.retention.check.interval.ms": 1000}


@dataclass(frozen=True, slots=True)
class Question:
    """Two runs of client_runs.py and how many records each moves; `aim` is the ratio that is enough."""

    text: str
    ours: str
    peer: str
    records: int
    peer_records: int
    size: int
    codec: str = "none"
    partitions: int = 1
    aim: float | None = None

    @property
    def consumes(self) -> bool:
        return "consume" in self.ours


QUESTIONS = [
    *(
        Question(
            f"produce {name}{note}, a record at a time", "ours_produce", peer, many, few, size, codec, aim=aim
        )
        for name, size, many in (("100 B", 100, 400_000), ("1 kB", 1000, 200_000))
        for codec, note in (("none", ""), ("lz4", " lz4"))
        for peer, few, aim in (("aiokafka_produce", 100_000, 1.5), ("confluent_produce", 400_000, None))
    ),
    *(
        Question(f"produce {name}, Arrow", "ours_produce_table", "confluent_produce", many, 400_000, size)
        for name, size, many in (("100 B", 100, 5_000_000), ("1 kB", 1000, 1_000_000))
    ),
    *(
        Question(
            f"consume {name}, a record at a time",
            "ours_consume",
            "aiokafka_consume",
            1_000_000,
            500_000,
            size,
            aim=1.5,
        )
        for name, size in (("100 B", 100), ("1 kB", 1000))
    ),
    *(
        Question(f"consume {name}, lists of 1,000", "ours_consume_lists", peer, 1_000_000, few, size, aim=aim)
        for name, size in (("100 B", 100), ("1 kB", 1000))
        for peer, few, aim in (
            ("aiokafka_consume_lists", 500_000, 1.5),
            ("confluent_consume_lists", 1_000_000, None),
        )
    ),
    *(
        Question(
            f"consume {name}{note}, Arrow, {partitions} partition{'s' if partitions > 1 else ''}",
            "ours_consume_arrow",
            peer,
            many,
            1_000_000,
            size,
            codec,
            partitions,
            3.0,
        )
        for name, size, many in (("100 B", 100, 5_000_000), ("1 kB", 1000, 1_000_000))
        for codec, note, partitions in (("none", "", 1), ("none", "", 8), ("lz4", " lz4", 1))
        for peer in ("confluent_consume_lists", "confluent_consume_values")
    ),
]


class RunFailed(Exception):
    """A process of client_runs.py ended with an error."""


def _same_topic(one: Question, other: Question) -> bool:
    return (one.size, one.codec, one.partitions) == (other.size, other.codec, other.partitions)


class Bench:
    def __init__(self, address: str, options: Options) -> None:
        self._address = address
        self._rounds = QUICK_ROUNDS if options.quick else ROUNDS
        self._quick = options.quick
        self._memory = "fresh" if options.fresh else "kept"
        self._filled: set[str] = set()

    def answer(self, question: Question) -> Answer:
        ours: list[float] = []
        theirs: list[float] = []
        # A round that does not count first, unless it is only to be shown that it runs.
        for number in range(self._rounds if self._quick else self._rounds + 1):
            mine = self._run(question.ours, question, question.records)
            other = self._run(question.peer, question, question.peer_records)
            if number > 0 or self._quick:
                ours.append(mine / 1e6)
                theirs.append(other / 1e6)
        answer = more_is_better(question.text, ours, theirs, "M records/s", question.aim)
        return replace(answer, row=replace(answer.row, peer=PEERS[question.peer]))

    def _run(self, name: str, question: Question, records: int) -> float:
        records = records // 10 if self._quick else records
        topic = self._topic(question)
        return float(self._child(name, topic, records, question.size, question.codec))

    def _topic(self, question: Question) -> str:
        """Its own for what is produced; one that is filled once for what is consumed."""
        if not question.consumes:
            topic = f"produced-{question.size}-{question.codec}"
            self._create(topic, 1, ["--config", "retention.bytes=500000000"])
            return topic
        topic = f"consumed-{question.size}-{question.codec}-{question.partitions}"
        if topic not in self._filled:
            self._filled.add(topic)
            self._create(topic, question.partitions, [])
            most = max(one.records for one in QUESTIONS if one.consumes and _same_topic(one, question))
            self._child("ours_produce_table", topic, most + SPARE_RECORDS, question.size, question.codec)
        return topic

    def _create(self, topic: str, partitions: int, more: Sequence[str]) -> None:
        command = [
            "topics",
            "--bootstrap-server",
            self._address,
            "--create",
            "--if-not-exists",
            "--topic",
            topic,
        ]
        subprocess.run(
            [sys.executable, "-m", "barnabas.cli.main", *command, "--partitions", str(partitions), *more],
            check=True,
            capture_output=True,
        )

    def _child(self, name: str, topic: str, records: int, size: int, codec: str) -> str:
        command = [sys.executable, str(CHILD), name, self._address, topic, str(records), str(size), codec]
        command.append(self._memory)
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
        if done.returncode:
            raise RunFailed(f"{name} ended with code {done.returncode}: {done.stderr[-3000:]}")
        return done.stdout


def asked_questions(arguments: list[str]) -> list[Question]:
    """Take `--only TEXT` out of the arguments; what is left is what every benchmark has."""
    if ONLY not in arguments[:-1]:
        return QUESTIONS
    at = arguments.index(ONLY)
    text = arguments[at + 1]
    del arguments[at : at + 2]
    asked = [question for question in QUESTIONS if text in question.text]
    if not asked:
        raise SystemExit(f"{ONLY} {text}: no question contains this text; the questions are\n{_all_texts()}")
    return asked


def _all_texts() -> str:
    return "\n".join(f"  {text}" for text in dict.fromkeys(question.text for question in QUESTIONS))


def ask_all(bench: Bench, questions: Sequence[Question]) -> tuple[list[Answer], list[str]]:
    """The answers, and the questions that failed: the others are asked all the same."""
    answers: list[Answer] = []
    failed: list[str] = []
    for question in questions:
        try:
            answers.append(bench.answer(question))
            print(answers[-1].line(), flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(question.text)
    return answers, failed


def main() -> int:
    questions = asked_questions(sys.argv)
    options = parse_options(__doc__)
    machine(options)
    plain = [name for name, compiled in compiled_kernels().items() if not compiled]
    print(f"kernels: {'interpreted: ' + ', '.join(plain) if plain else 'all compiled'}")
    compileall.compile_dir(Path(barnabas.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        broker = OurBroker(Path(name), settings=BROKER)
        with broker.running() as address:
            answers, failed = ask_all(Bench(address, options), questions)
    report([answer.shown() for answer in answers], options)
    if failed:
        print(f"failed:  {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
