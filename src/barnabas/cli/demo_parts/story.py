"""The steps of the demo: produce, run Spark, kill it, run it again, check, query, print next steps.

The broker and the Spark job are real processes, and the check reads the results back from topics and files.
Only the clicks are generated. Progress is printed as it happens, and every wait has a timeout.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import barnabas
from barnabas.cli.demo_parts.check import Verdict, judge
from barnabas.cli.demo_parts.children import DemoFailed, SparkJob, running_broker
from barnabas.cli.demo_parts.clicks import HOUR_MS, START, Clicks, Expected, Kind
from barnabas.cli.demo_parts.looking import (
    CLEAN,
    CLICKS,
    DROPPED,
    GROUP,
    HOURS,
    PARTITIONS,
    TOPICS,
    Look,
)
from barnabas.client.blocking import Admin, Producer

# Number of micro-batches of the day. Two batches plus the lateness limit are less than the watermark, so no
# stream drops an event because it saw a later one first.
_BATCHES: Final = 12
_WATERMARK_HOURS: Final = 6
# Kill after this share of the events, in the middle of a transaction if one starts within the wait.
_KILL_AT: Final = 0.3
_KILL_WAIT_S_MAX: Final = 10.0
_KILL_LOOK_S: Final = 0.01

_SILENCE_S_MAX: Final = 120.0
_LOOK_S: Final = 0.3
# Intervals between progress lines: with and without progress.
_PROGRESS_S: Final = 2.0
_NO_PROGRESS_S: Final = 10.0
# The timestamps of the clicks are in the past, so time-based retention would delete them at once.
_UNLIMITED_RETENTION: Final = {"retention.ms": "-1"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    events: int
    seed: int
    master: str
    host: str
    directory: Path
    # Whether the directory remains after the demo.
    is_kept: bool
    java_home: str | None


class Story:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._log = plan.directory / "spark.log"
        self._parquet = plan.directory / "parquet"
        self._scratch = plan.directory / "scratch"
        self._began = time.monotonic()
        self._answer: dict[str, Any] | None = None

    def run(self) -> int:
        with running_broker(self._plan.directory, self._plan.host) as address:
            self._say(f"broker ready: {address}")
            with Admin(bootstrap_servers=address) as admin:
                expected = self._produce(admin, address)
                look = Look(admin, address, self._parquet)
                self._run_until_killed(address, look)
                self._run_to_the_end(address, look)
                self._say("reading back: topics with read_committed, Parquet with pyarrow")
                verdict = judge(expected, look.found(), _WATERMARK_HOURS * HOUR_MS)
                lost = look.never_committed()
        self._show(verdict, expected)
        if verdict.wrong:
            print(f"\nkept for inspection: {self._plan.directory}")
            return 1
        if lost > 0:
            print(f"records of aborted transactions, written again after the restart: {lost:,}")
        self._show_answer()
        self._print_next_steps()
        return 0

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)

    # Steps

    def _produce(self, admin: Admin, address: str) -> Expected:
        for topic in TOPICS:
            admin.create_topic(topic, partitions=PARTITIONS, settings=_UNLIMITED_RETENTION)
        clicks = Clicks(self._plan.seed, self._plan.events)
        with Producer(bootstrap_servers=address) as producer:
            deliveries = [
                producer.send(CLICKS, one.value, one.key, timestamp_ms=one.sent_ms) for one in clicks
            ]
            producer.flush(_SILENCE_S_MAX)
            for delivery in deliveries:
                delivery.result()
        kinds = ", ".join(f"{clicks.expected.kinds[kind]:,} {kind.value}" for kind in Kind)
        generated = f"clicks of {START:%Y-%m-%d}, generated with seed {self._plan.seed}"
        self._say(f"produced to {CLICKS}: {len(deliveries):,} {generated}")
        self._say(f"  of these: {kinds}")
        return clicks.expected

    def _job(self, address: str) -> SparkJob:
        orders = {
            "master": self._plan.master,
            "host": self._plan.host,
            "address": address,
            "directory": str(self._plan.directory),
            "scratch": str(self._scratch),
            "most": self._plan.events // _BATCHES + PARTITIONS,
            "group": GROUP,
            "clicks": CLICKS,
            "clean": CLEAN,
            "dropped": DROPPED,
            "hours": HOURS,
            "watermark": f"{_WATERMARK_HOURS} hours",
        }
        return SparkJob(orders, self._log, self._scratch, self._plan.java_home)

    def _run_until_killed(self, address: str, look: Look) -> None:
        job = self._job(address)
        try:
            self._say(f"Spark starts: master {self._plan.master}, log {self._log}")
            ended = self._follow(job, look, stop_at=int(_KILL_AT * self._plan.events))
            if not ended:
                self._wait_for_transaction(look)
            if job.exit_code is not None:
                raise DemoFailed("the Spark job finished before it could be killed; try more --events")
        finally:
            job.kill()
        self._say("killed: SIGKILL to the job's Python, its JVM and their workers")
        self._say(f"  transactions to {CLEAN} left open: {look.open_transactions()}")

    def _run_to_the_end(self, address: str, look: Look) -> None:
        job = self._job(address)
        try:
            self._say("Spark starts again from the checkpoints of the killed job")
            self._follow(job, look, stop_at=None)
        finally:
            job.kill()

    def _follow(self, job: SparkJob, look: Look, *, stop_at: int | None) -> bool:
        """Follow the job until `stop_at` events are read and some are in Parquet, or until it has ended.

        Returns whether the job has ended.
        """
        seen, printed = (0, 0), (0, 0)
        changed_at = printed_at = time.monotonic()
        while True:
            ended = job.exit_code is not None
            event = job.next_event(_LOOK_S)
            now, before = time.monotonic(), seen
            if event is not None:
                self._handle(event)
            seen = look.read(), look.landed()
            if seen != before or event is not None:
                changed_at = now
            is_enough = stop_at is not None and seen[0] >= stop_at and seen[1] > 0
            is_news = seen != printed and (now - printed_at >= _PROGRESS_S or is_enough or ended)
            if is_news or now - printed_at >= _NO_PROGRESS_S:
                self._say(f"  read {seen[0]:,} of {self._plan.events:,}, written to Parquet {seen[1]:,}")
                printed, printed_at = seen, now
            job.check()
            if is_enough or (ended and event is None):
                return not is_enough
            if now - changed_at > _SILENCE_S_MAX:
                raise DemoFailed(f"no progress for {_SILENCE_S_MAX:.0f} s; see {self._log}")

    def _handle(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self._say("  Spark is up: the first stream starts to clean the clicks")
            case "all started":
                self._say("  two more streams started: one writes to Parquet, one counts per hour")
            case "cleaned":
                self._say("  all clicks are cleaned; the other two streams catch up")
            case "answer":
                self._answer = event

    def _wait_for_transaction(self, look: Look) -> None:
        """Wait for an open transaction: killing the job while it writes is the hardest case."""
        end = time.monotonic() + _KILL_WAIT_S_MAX
        while look.open_transactions() == 0 and time.monotonic() < end:
            time.sleep(_KILL_LOOK_S)

    # Results

    def _show(self, verdict: Verdict, expected: Expected) -> None:
        self._say("check")
        print(f"\n  {'':<26}{'expected':>10}{'found':>10}")
        for row in verdict.rows:
            mark = "" if row.found == row.expected else "  DIFFERS"
            print(f"  {row.what:<26}{row.expected:>10,}{row.found:>10,}{mark}")
        if verdict.wrong:
            print("\ncheck failed:")
            for line in verdict.wrong:
                print(f"  {line}")
            return
        sum_of = " + ".join(f"{expected.kinds[kind]:,} {kind.value}" for kind in Kind)
        print(f"\ncheck passed: {expected.events:,} = {sum_of}")
        print(f"every sound click is exactly once in {CLEAN} and exactly once in Parquet")
        closed = expected.closed_hours(_WATERMARK_HOURS * HOUR_MS)
        waiting = len({hour.start_ms for hour in expected.hours}) - len({hour.start_ms for hour in closed})
        print(f"{HOURS} has all hours except the last {waiting}: its watermark is {_WATERMARK_HOURS} hours")

    def _show_answer(self) -> None:
        if self._answer is None:
            raise DemoFailed(f"the Spark job ended without a query result; see {self._log}")
        print("\nSQL on the Parquet files: the most clicked page in every six hours\n")
        for line in self._answer["query"].splitlines():
            print(f"  {line}")
        print()
        for line in table([self._answer["columns"], *self._answer["rows"]]):
            print(f"  {line}")

    def _print_next_steps(self) -> None:
        pipeline = Path(barnabas.__file__).parent / "spark" / "demo" / "pipeline.py"
        print(f"\nthe pipeline: {pipeline}")
        if self._plan.is_kept:
            print("to read the topics, in two terminals:")
            print(f"  barnabas up --dir {self._plan.directory / 'broker'}")
            words = "--from-beginning --formatter-property print.headers=true --max-messages 5"
            print(f"  barnabas console-consumer --bootstrap-server 127.0.0.1:9092 --topic {DROPPED} {words}")
        else:
            print("to keep topics, Parquet and logs: barnabas demo --dir demo-data")
        print("Spark and topics: docs/guides/spark.md; exactly once: docs/guides/delivery.md")
        self._say("done")


def table(rows: Sequence[Sequence[object]]) -> list[str]:
    """Format rows as lines; the first row is the header."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in texts
    ]
