"""A Spark job is killed with open transactions, and its query is restarted with another plan.

Transactions for which the new plan has no tasks would block read_committed readers.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.spark_runs.copying import CopyQuery, Plan, check_restart, kill_when_open, new_query, open_ids

WITHIN_S = 10
BATCH = {"transactionScope": "batch"}
ANOTHER = {"transactionalIdPrefix": "another"}


class Case(NamedTuple):
    """`held`: the micro-batch in which the job is killed."""

    before: Plan
    after: Plan
    held: int = 0


# Queries of each killed job: the first job runs in `make test`, the others in `make soak`.
JOBS = [
    {
        "fewer tasks": Case(Plan(3), Plan(2)),
        "more tasks": Case(Plan(2), Plan(3)),
    },
    {
        "fewer tasks, second micro-batch": Case(Plan(3), Plan(1), held=1),
        "more tasks, second micro-batch": Case(Plan(2), Plan(4), held=1),
    },
    {
        "scope batch": Case(Plan(3), Plan(2, BATCH)),
        "scope task": Case(Plan(2, BATCH), Plan(3)),
        "scope task, second micro-batch": Case(Plan(2, BATCH), Plan(3), held=1),
    },
    {
        "another prefix": Case(Plan(3), Plan(3, ANOTHER)),
        "another prefix, scope batch": Case(Plan(2, BATCH), Plan(2, {**BATCH, **ANOTHER}), held=1),
        "another prefix and scope": Case(Plan(3), Plan(2, {**BATCH, **ANOTHER})),
    },
]
NAMES = [
    pytest.param(job, name, id=name, marks=[pytest.mark.soak] if job else [])
    for job, cases in enumerate(JOBS)
    for name in cases
]


@pytest.fixture(scope="module")
def run_and_kill(
    spark: SparkSession, address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[int], dict[str, CopyQuery]]]:
    """Return the queries of a killed job by name."""

    @cache
    def killed(job: int) -> dict[str, CopyQuery]:
        directory = tmp_path_factory.mktemp("killed")
        queries = {
            name: new_query(address, directory, case.before, held=case.held)
            for name, case in JOBS[job].items()
        }
        kill_when_open(address, list(queries.values()), directory / "job.txt")
        return queries

    before = spark.conf.get("spark.sql.adaptive.streaming.stateless.enabled")
    yield killed
    spark.conf.set("spark.sql.adaptive.streaming.stateless.enabled", str(before))


@pytest.mark.long
@pytest.mark.parametrize(("job", "name"), NAMES)
def test_readers_see_all_rows_soon_after_the_first_commit(
    spark: SparkSession,
    address: str,
    run_and_kill: Callable[[int], dict[str, CopyQuery]],
    job: int,
    name: str,
) -> None:
    case, query = JOBS[job][name], run_and_kill(job)[name]
    # Otherwise the test shows nothing.
    assert len(open_ids(address, [query])) == case.before.transactions

    check_restart(spark, address, query, case.after, within_s=WITHIN_S)
