"""A query from topic to topic whose processes are killed, and what readers see of its output.

Each record is a number, once in the input. The query runs in the Spark of the test or in a driver process
(driver.py); both start it with start_query() and the same orders, so that one goes on where the other was.
"""

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.records import IsolationLevel, OffsetSpec
from barnabas.client.admin.transactions import TransactionState
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.consumer.message import EndOfPartition
from barnabas.protocol.api_keys import ApiKey
from barnabas.testing.waiting import wait_until
from support.wire.holding_proxy import WAIT_S_MAX, Hold, HoldingProxy

TASK: Final = {"deliveryGuarantee": "exactly-once"}
BATCH: Final = {"deliveryGuarantee": "exactly-once", "transactionScope": "batch"}
SCOPES: Final = {"task": TASK, "batch": BATCH}
PARTITIONS: Final = 2
# Three micro-batches. The second is attacked, when there are marks of the first.
ROWS: Final = 120
ROWS_PER_BATCH: Final = 40
# Requests that are held back must not be sent again meanwhile: a second one would pass.
PATIENCE: Final = {
    "kafka.request.timeout.ms": "170000",
    "kafka.delivery.timeout.ms": "180000",
    "kafka.default.api.timeout.ms": "180000",
    "kafka.max.block.ms": "180000",
}
_numbers = count()


class AttackedQuery:
    """Its input, its output and its checkpoint. `prefix` is in its transactional ids and in no others."""

    def __init__(
        self,
        address: str,
        directory: Path,
        options: dict[str, str],
        *,
        prefix: str | None = None,
        **orders: Any,
    ) -> None:
        name = f"attacked-{next(_numbers)}-"
        self.address = address
        self.options = options
        self.prefix = prefix or name
        self.source, self.target = f"{name}in", f"{name}out"
        self.orders: dict[str, Any] = {
            "name": name,
            "address": address,
            "source": self.source,
            "target": self.target,
            "checkpoint": str(directory / f"{name}checkpoint"),
            "limit": ROWS_PER_BATCH,
            "options": {**options, **PATIENCE, "transactionalIdPrefix": self.prefix},
            "ends": True,
            **orders,
        }
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topic(self.source, partitions=PARTITIONS)
            admin.create_topic(self.target, partitions=PARTITIONS)
        with Producer(bootstrap_servers=address) as producer:
            for number in range(ROWS):
                producer.send(self.source, b"%d" % number, partition=number % PARTITIONS)

    @property
    def is_by_batch(self) -> bool:
        return self.options.get("transactionScope") == "batch"

    def start(self, spark: SparkSession, **changed: Any) -> StreamingQuery:
        return start_query(spark, {**self.orders, **changed})

    def finish(self, spark: SparkSession, **changed: Any) -> None:
        """Run it until nothing is left to read."""
        query = self.start(spark, **changed)
        try:
            assert query.awaitTermination(int(WAIT_S_MAX)), (
                f"{self.orders['name']} did not end: {query.status}"
            )
        finally:
            query.stop()

    def hold_commits(
        self, proxy: HoldingProxy, count: int | None = None, *, batches: int = 1, skip: int = 0
    ) -> Hold:
        """Hold `count` commit requests of the micro-batch, after letting some pass; all by default."""
        # By micro-batch: each task claims its rows in a small transaction, and the driver ends the large one.
        claims = PARTITIONS if self.is_by_batch else 0
        skip += (claims + self.commits) * batches + claims
        return self.hold(proxy, ApiKey.END_TXN, skip=skip, count=count or self.commits)

    def hold_rows(self, proxy: HoldingProxy) -> Hold:
        """Hold the response to the first request that writes rows of the second micro-batch."""
        return self.hold(proxy, ApiKey.PRODUCE, skip=PARTITIONS, response=True)

    def hold(self, proxy: HoldingProxy, key: ApiKey, **how: Any) -> Hold:
        """Hold requests of its transactions."""
        return proxy.hold(key, naming=self.prefix.encode(), **how)

    @property
    def commits(self) -> int:
        """Number of requests with which the driver commits a micro-batch."""
        return 1 if self.is_by_batch else PARTITIONS

    def wait_for_open_rows(self, partitions: int = PARTITIONS) -> None:
        """Wait until this many output partitions have records of open transactions."""

        def open_partitions() -> int:
            ends = [self._ends("read_committed"), self._ends("read_uncommitted")]
            return sum(committed < written for committed, written in zip(*ends, strict=True))

        wait_until(lambda: open_partitions() >= partitions, timeout_s=WAIT_S_MAX, what="rows are open")
        with Admin(bootstrap_servers=self.address) as admin:
            states = [TransactionState.ONGOING]
            found = admin.list_transactions(states=states, pattern=f"{self.prefix}.*")
        assert found, "records are open, so their transaction is"

    def wait_for_stable_end(self) -> None:
        """Wait until no transaction is open in the output."""
        wait_until(
            lambda: self._ends("read_committed") == self._ends("read_uncommitted"),
            timeout_s=WAIT_S_MAX,
            what="no transaction is open",
        )

    def _ends(self, isolation: IsolationLevel) -> list[int | None]:
        wanted = {TopicPartition(self.target, each): int(OffsetSpec.LATEST) for each in range(PARTITIONS)}
        with Admin(bootstrap_servers=self.address) as admin:
            found = admin.list_offsets(wanted, isolation=isolation)
        return [found[tp].offset for tp in wanted]

    def seen(self, isolation: IsolationLevel = "read_committed") -> Counter[int]:
        """Count how often readers see each number."""
        found: Counter[int] = Counter()
        settings = {"isolation_level": isolation, "auto_offset_reset": "earliest"}
        with Consumer(bootstrap_servers=self.address, enable_partition_eof=True, **settings) as consumer:
            left = set(consumer.assign_topic(self.target))
            while left:
                messages = consumer.batch(1000, timeout_ms=WAIT_S_MAX * 1000)
                assert messages, f"the ends of {left} are not reached"
                for message in messages:
                    if isinstance(message, EndOfPartition):
                        left.discard(message.tp)
                    else:
                        found[int(message.value or b"")] += 1
        return found

    def aborted(self) -> int:
        """Number of records that only read_uncommitted readers see."""
        return self.seen("read_uncommitted").total() - self.seen().total()

    def check(self, *, aborted: bool = True) -> None:
        """Assert that every record is visible once; with `aborted`, also that some written ones are not."""
        self.wait_for_stable_end()
        seen = self.seen()
        doubled = sorted(number for number, times in seen.items() if times > 1)
        missing = sorted(set(range(ROWS)) - set(seen))
        assert (doubled, missing) == ([], []), self.orders["name"]
        assert seen.total() == ROWS
        if aborted:
            # Otherwise no transaction was open at the kill, and the test shows nothing.
            assert self.aborted() > 0, "no record was aborted"


def start_query(spark: SparkSession, orders: dict[str, Any]) -> StreamingQuery:
    rows = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders["address"])
        .option("subscribe", orders["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", orders["limit"])
        .load()
        .selectExpr("value", "partition")
    )
    if "shuffle_by" in orders:
        # Without a number of tasks, which Spark may then choose.
        rows = rows.repartition(expr(orders["shuffle_by"]))
    writer = (
        rows.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", orders["address"])
        .option("topic", orders["target"])
        .option("checkpointLocation", orders["checkpoint"])
        .options(**orders["options"])
        .queryName(orders["name"])
    )
    return (writer.trigger(availableNow=True) if orders["ends"] else writer).start()


def failure(query: StreamingQuery) -> str:
    """Wait until the query has failed; return the reason."""
    try:
        ended = query.awaitTermination(int(WAIT_S_MAX))
    except StreamingQueryException as error:
        return str(error)
    finally:
        query.stop()
    raise AssertionError("the query ended well" if ended else "the query still runs")
