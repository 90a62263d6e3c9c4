"""Read back the results: from the topics, the pipeline's group and Parquet."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from barnabas.base.ids import TopicPartition
from barnabas.cli.demo_parts.check import Found
from barnabas.cli.demo_parts.children import DemoFailed
from barnabas.cli.demo_parts.clicks import Hour
from barnabas.client.admin.records import IsolationLevel, OffsetSpec
from barnabas.client.admin.transactions import TransactionState
from barnabas.client.blocking import Admin, Consumer
from barnabas.client.consumer.message import EndOfPartition, Message

CLICKS: Final = "clicks"
CLEAN: Final = "clean-clicks"
DROPPED: Final = "dropped-clicks"
HOURS: Final = "clicks-per-hour"
TOPICS: Final = (CLICKS, CLEAN, DROPPED, HOURS)
PARTITIONS: Final = 2
GROUP: Final = "demo-clean"

_SILENCE_MS_MAX: Final = 30_000


class Look:
    """Reads results independently of the Spark job and its reports."""

    def __init__(self, admin: Admin, address: str, parquet: Path) -> None:
        self._admin = admin
        self._address = address
        self._parquet = parquet

    def produced(self) -> int:
        tps = [TopicPartition(CLICKS, number) for number in range(PARTITIONS)]
        ends = self._admin.list_offsets(dict.fromkeys(tps, int(OffsetSpec.LATEST)))
        return sum(one.offset or 0 for one in ends.values())

    def read(self) -> int:
        """Count the records up to the committed offsets; the topic has no transaction markers."""
        committed = self._admin.list_group_offsets(GROUP)
        return sum(one.offset for one in committed.values() if one is not None)

    def open_transactions(self) -> int:
        """Count the open transactions of the first stream, which are named after its group."""
        ongoing = [TransactionState.ONGOING]
        return len(self._admin.list_transactions(states=ongoing, pattern=f"{GROUP}-.*"))

    def landed(self) -> int:
        return sum(int(pq.read_metadata(file).num_rows) for file in landed_files(self._parquet))

    def found(self) -> Found:
        """Read all results, record by record."""
        return Found(
            in_topic=self.produced(),
            read=self.read(),
            dropped=Counter(_reason(message) for message in self._messages(DROPPED)),
            written_ids=[str(_json(message)["id"]) for message in self._messages(CLEAN)],
            landed_ids=[
                event_id
                for file in landed_files(self._parquet)
                for event_id in pq.read_table(file, columns=["id"])["id"].to_pylist()
            ],
            hours=[_hour(_json(message)) for message in self._messages(HOURS)],
        )

    def never_committed(self) -> int:
        """Count the records of aborted transactions of the first stream."""
        return sum(
            sum(1 for _ in self._messages(topic, "read_uncommitted")) - sum(1 for _ in self._messages(topic))
            for topic in (CLEAN, DROPPED)
        )

    def _messages(self, topic: str, isolation: IsolationLevel = "read_committed") -> Iterator[Message]:
        with Consumer(
            bootstrap_servers=self._address,
            isolation_level=isolation,
            auto_offset_reset="earliest",
            enable_partition_eof=True,
        ) as consumer:
            left = set(consumer.assign_topic(topic))
            while left:
                some = consumer.batch(timeout_ms=_SILENCE_MS_MAX)
                if not some:
                    raise DemoFailed(f"{topic}: no records from the broker for {_SILENCE_MS_MAX // 1000} s")
                for message in some:
                    if isinstance(message, EndOfPartition):
                        left.discard(message.tp)
                    else:
                        yield message


def landed_files(parquet: Path) -> list[Path]:
    """Return the files in Spark's metadata log; it excludes files that killed tasks left behind."""
    log = parquet / "_spark_metadata"
    entries = [one for one in log.iterdir() if one.name.split(".")[0].isdigit()] if log.is_dir() else []
    names: set[str] = set()
    for entry in entries:
        # The first line is the version. A compact file repeats the entries of earlier files.
        for line in entry.read_text().splitlines()[1:]:
            names.add(unquote(urlparse(json.loads(line)["path"]).path))
    return [Path(name) for name in sorted(names)]


def _json(message: Message) -> Mapping[str, object]:
    read = json.loads(message.value or b"")
    assert isinstance(read, dict), "the pipeline writes objects"
    return read


def _reason(message: Message) -> str:
    return next((value.decode() for name, value in message.headers if name == "reason" and value), "none")


def _hour(counted: Mapping[str, object]) -> tuple[Hour, int]:
    start = datetime.fromisoformat(str(counted["hour"]))
    return Hour(int(start.timestamp() * 1000), str(counted["page"])), int(str(counted["clicks"]))
