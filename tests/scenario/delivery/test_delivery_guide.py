"""The programs of the guide to delivery keep what it promises, however often they are killed."""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from scenario.delivery.postgres import postgres, why_not
from scenario.delivery.programs import GUIDE, PROGRAMS, WAIT_S_MAX
from scenario.delivery.runs import (
    A_LINE_A_BATCH,
    A_LINE_AN_ORDER,
    KEYS,
    TWO_PHASE_SETTINGS,
    DeliveryRun,
    delivery_run,
    invoices,
    number_of,
)

# What may happen has happened after the first of them, nearly always; on a busy machine, some later.
ROUNDS_MAX = 12
PROGRAM_LINES_MAX = 60
# How often a program stands still while another takes over: which step it is hit in is chance.
PAUSES = 6


def missing(run: DeliveryRun, output: list[int]) -> set[int]:
    return set(range(run.fed)) - set(output)


def doubled(output: list[int]) -> list[int]:
    return [number for number, times in Counter(output).items() if times > 1]


def test_every_block_of_python_is_a_short_program() -> None:
    assert GUIDE.read_text().count("```python") == len(PROGRAMS)
    assert max(len(program.splitlines()) for program in PROGRAMS.values()) <= PROGRAM_LINES_MAX


def test_every_program_is_run_here() -> None:
    assert set(re.findall(r'"(\w+\.py)", tmp_path', Path(__file__).read_text())) == set(PROGRAMS)


def test_at_most_once_doubles_nothing_and_may_lose(tmp_path: Path) -> None:
    with delivery_run("at_most_once.py", tmp_path, pace=A_LINE_AN_ORDER) as run:
        for _ in range(ROUNDS_MAX):
            run.disturb()
            run.finish(run.printed)

            assert doubled(run.printed()) == []
            if missing(run, run.printed()):
                break
        else:
            raise AssertionError("no kill lost an order: this has shown nothing")


def test_at_least_once_loses_nothing_and_may_double(tmp_path: Path) -> None:
    with delivery_run("at_least_once.py", tmp_path, pace=A_LINE_AN_ORDER) as run:
        for _ in range(ROUNDS_MAX):
            run.disturb()
            run.finish(run.printed)

            assert missing(run, run.printed()) == set()
            if doubled(run.printed()):
                break
        else:
            raise AssertionError("no kill doubled an order: this has shown nothing")


def test_exactly_once_the_invoices_are_the_orders(tmp_path: Path) -> None:
    with (
        delivery_run("exactly_once.py", tmp_path, pace=A_LINE_A_BATCH) as run,
        invoices(run.address, "read_committed") as committed,
        invoices(run.address, "read_uncommitted") as all_of_them,
    ):
        for _ in range(ROUNDS_MAX):
            run.disturb()
            run.finish(committed.read)

            output = committed.read_to_end()
            assert sorted(output) == list(range(run.fed))
            for key in range(KEYS):
                of_key = [number for number in output if number % KEYS == key]
                assert of_key == sorted(of_key)
            if doubled(all_of_them.read_to_end()):
                break
        else:
            raise AssertionError("no kill hit an open transaction: this has shown nothing")


def test_exactly_once_fences_a_worker_that_only_paused(tmp_path: Path) -> None:
    with (
        delivery_run("exactly_once.py", tmp_path, pace=A_LINE_A_BATCH) as run,
        invoices(run.address, "read_committed") as committed,
    ):
        run.feed()
        first = run.live()
        first.live_on(run.rng, A_LINE_A_BATCH.lines_max, early=0)
        first.pause()
        run.finish(committed.read)
        first.go_on()

        assert first.code() == 1
        assert "ProducerFenced" in first.complaints or "FencedInstance" in first.complaints
        assert sorted(committed.read_to_end()) == list(range(run.fed))


def rows_of(database: Path) -> list[int]:
    with closing(sqlite3.connect(database)) as connection:
        try:
            return [number_of(text) for (text,) in connection.execute("SELECT text FROM invoices")]
        except sqlite3.OperationalError:
            # The program did not live long enough to make it.
            return []


def test_sqlite_has_each_order_once(tmp_path: Path) -> None:
    database = tmp_path / "invoices.sqlite"
    with delivery_run("into_database.py", tmp_path, str(database), pace=A_LINE_A_BATCH) as run:
        run.disturb()
        run.finish(lambda: rows_of(database))

        assert sorted(rows_of(database)) == list(range(run.fed))


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_postgresql_has_each_order_once(tmp_path: Path) -> None:
    import psycopg

    def rows() -> list[int]:
        with psycopg.connect(database) as connection:
            try:
                return [number_of(text) for (text,) in connection.execute("SELECT text FROM invoices")]
            except psycopg.errors.UndefinedTable:
                return []

    with (
        postgres() as database,
        delivery_run("into_database.py", tmp_path, database, pace=A_LINE_A_BATCH) as run,
    ):
        run.disturb()
        run.finish(rows)

        assert sorted(rows()) == list(range(run.fed))


def test_of_two_that_write_into_one_database_one_ends_or_both(tmp_path: Path) -> None:
    database = tmp_path / "invoices.sqlite"

    def is_whole() -> bool:
        return len(set(rows_of(database))) == run.fed

    with delivery_run("into_database.py", tmp_path, str(database), pace=A_LINE_A_BATCH) as run:
        two = [run.live(), run.live()]
        # Until both are up the first does everything.
        run.feed_until(lambda: any(each.has_ended for each in two))
        other, refused = sorted(two, key=lambda each: each.has_ended)
        run.feed()
        other.wait_until(lambda: is_whole() or other.has_ended)
        if other.has_ended:
            # Each was the first in one of the partitions: then neither can go on, and a third can.
            run.live().wait_until(is_whole)

        for each in [refused, other] if other.has_ended else [refused]:
            assert each.code() == 1
            assert "is read by another process" in each.complaints
        assert sorted(rows_of(database)) == list(range(run.fed))


def completed(run: DeliveryRun) -> set[bool]:
    """Whether what a killed program had prepared was what it had stored, for all that were found."""
    found = [line.split() for life in run.lives for line in life.lines if line.startswith("found")]
    return {line[1].rstrip(",") == line[-1] for line in found}


def test_two_phases_make_rows_and_records_of_each_order_once(tmp_path: Path) -> None:
    database = tmp_path / "invoices.sqlite"
    with (
        delivery_run(
            "two_phase.py", tmp_path, str(database), pace=A_LINE_A_BATCH, settings=TWO_PHASE_SETTINGS
        ) as run,
        invoices(run.address, "read_committed") as committed,
    ):
        seen: set[bool] = set()
        for _ in range(ROUNDS_MAX):
            run.disturb()
            run.finish(committed.read)

            assert sorted(committed.read_to_end()) == list(range(run.fed))
            assert sorted(rows_of(database)) == list(range(run.fed))
            seen = completed(run)
            if seen == {True, False}:
                break
        else:
            raise AssertionError(f"kills left only what was stored, or only what was not: {seen}")


def test_two_phase_commit_rejects_decisions_of_a_worker_that_only_paused(tmp_path: Path) -> None:
    database = tmp_path / "invoices.sqlite"
    with (
        delivery_run(
            "two_phase.py", tmp_path, str(database), pace=A_LINE_A_BATCH, settings=TWO_PHASE_SETTINGS
        ) as run,
        invoices(run.address, "read_committed") as committed,
    ):
        run.feed()
        for _ in range(PAUSES):
            first = run.live()
            first.live_on(run.rng, A_LINE_A_BATCH.lines_max, early=0)
            first.pause()
            run.feed()
            second = run.live()
            deadline = monotonic() + WAIT_S_MAX
            while not (second.has_ended or set(range(run.fed)) <= set(committed.read())):
                assert monotonic() < deadline, second.complaints
            if second.has_ended:
                # The first stood still in the middle of a transaction of the database.
                assert "database is locked" in second.complaints
                first.kill()
                continue

            done = list(range(run.fed))
            second.kill()
            # The first is told when it decides about an order. It may have none: if it stood still before it
            # read its positions, it now finds those of the second, which has done all of them.
            run.feed()
            first.go_on()

            assert first.code() == 1
            assert "has taken over" in first.complaints or "ProducerFenced" in first.complaints
            assert sorted(committed.read_to_end()) == done
            assert sorted(rows_of(database)) == done
        run.finish(committed.read)
        assert sorted(committed.read_to_end()) == list(range(run.fed))
        assert sorted(rows_of(database)) == list(range(run.fed))
