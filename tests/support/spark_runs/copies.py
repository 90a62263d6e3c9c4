"""Attempts of one task that run at once, because Spark speculates (spark.speculation)."""

from typing import Final

from barnabas.protocol.api_keys import ApiKey
from barnabas.testing.waiting import wait_until
from support.spark_runs.attacked import BATCH, PARTITIONS, TASK
from support.spark_runs.attacks import Scene
from support.spark_runs.process import DriverProcess
from support.wire.holding_proxy import WAIT_S_MAX

# As soon as one of two tasks is done, the other one is taken for slow.
SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.locality.wait": "0s",
}


def copy_wins(on: Scene, driver: DriverProcess) -> None:
    """The first attempt has written and waits; its copy fences it, writes all again, and is done."""
    query = on.query(TASK)
    first = query.hold_rows(on.proxy)
    driver.start(query.orders)
    first.wait()
    query.wait_for_open_rows(1)
    driver.wait_for(f"ended {query.orders['name']}")
    first.release()
    query.check()


def fenced_attempt_wins(on: Scene, driver: DriverProcess) -> None:
    """The first attempt is done after its copy has fenced it, and Spark believes it: the commit must fail."""
    query = on.query(TASK)
    # Two for each micro-batch, and the first attempt's are all in the log.
    first = query.hold(on.proxy, ApiKey.TXN_OFFSET_COMMIT, skip=PARTITIONS, response=True)
    copy = query.hold(on.proxy, ApiKey.PRODUCE, skip=PARTITIONS * 2, response=True)
    driver.start(query.orders)
    first.wait()
    copy.wait()
    first.release()
    told = driver.wait_for(f"failed {query.orders['name']}")
    assert "fenced" in told.lower(), told
    on.forget()
    query.finish(on.spark)
    query.check()


def copy_is_refused(on: Scene, driver: DriverProcess) -> None:
    """In the transaction of a whole micro-batch the first attempt that has rows writes, and no other."""
    query = on.query(BATCH)
    first = query.hold_rows(on.proxy)
    driver.start(query.orders)
    first.wait()
    query.wait_for_open_rows(1)
    # Spark tries one copy on each other host, and goes on with the first attempt when that fails.
    wait_until(lambda: _is_refused(on), timeout_s=WAIT_S_MAX, what="the copy is refused")
    first.release()
    driver.wait_for(f"ended {query.orders['name']}")
    # The copy has written nothing.
    query.check(aborted=False)


def _is_refused(on: Scene) -> bool:
    logs = on.directory.glob("work-*/app-*/*/stderr")
    return any("writes to the same transaction: restart the query" in log.read_text() for log in logs)
