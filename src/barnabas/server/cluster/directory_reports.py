"""Report to the controller the log directory of each replica whose directory it does not know.

When a directory fails, the controller must know which partitions need another leader. (KIP-858)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Final

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.log_dirs import (
    AssignReplicasToDirsDirectoryData,
    AssignReplicasToDirsPartitionData,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopicData,
)
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.storage.manager import LogManager

logger = logging.getLogger(__name__)

# The same number as in Kafka.
REPLICAS_PER_REQUEST: Final = 2_000
_RETRY_S: Final = 1.0


class DirectoryReports:
    """Call wake() when replicas were added or changed; run() sends the reports."""

    def __init__(
        self,
        replicas: Replicas,
        logs: LogManager,
        call: Callable[[object], Awaitable[object]],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._logs = logs
        self._call = call
        self._broker_epoch = broker_epoch
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Send reports, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                while found := list(islice(self._untold(), REPLICAS_PER_REQUEST)):
                    if not await self._tell(found):
                        await asyncio.sleep(_RETRY_S)
            except Exception:
                # The next attempt begins with the partitions that were not reported.
                self._wake.set()
                raise

    def _untold(self) -> Iterator[tuple[Uuid, Partition]]:
        for partition in list(self._replicas.partitions.values()):
            directory = self._where(partition.tp)
            if directory is not None and directory != self._told(partition):
                yield directory, partition

    def _where(self, tp: TopicPartition) -> Uuid | None:
        log = self._logs.logs.get(tp)
        return None if log is None else self._logs.home(log).id

    def _told(self, partition: Partition) -> Uuid | None:
        image = partition.image
        if not image.directories or partition.me not in image.replicas:
            return None
        return image.directories[image.replicas.index(partition.me)]

    async def _tell(self, found: list[tuple[Uuid, Partition]]) -> bool:
        """Send a report. Return whether the controller accepted it; its changes come with the metadata."""
        answer = await self._call(_request(found, self._replicas.node_id, self._broker_epoch()))
        assert isinstance(answer, AssignReplicasToDirsResponse)
        codes = [answer.error_code]
        codes += [
            one.error_code
            for directory in answer.directories
            for topic in directory.topics
            for one in topic.partitions
        ]
        wrong = [ErrorCode(code).name for code in codes if code != ErrorCode.NONE]
        if wrong:
            logger.warning("controller refused directory assignments count=%d error=%s", len(wrong), wrong[0])
        return not wrong


def _request(
    found: list[tuple[Uuid, Partition]], node_id: int, broker_epoch: int
) -> AssignReplicasToDirsRequest:
    by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
    for directory, partition in found:
        by_topic = by_directory.setdefault(directory, {})
        by_topic.setdefault(partition.topic_id, []).append(partition.tp.partition)
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            AssignReplicasToDirsDirectoryData(
                id=directory,
                topics=[
                    AssignReplicasToDirsTopicData(
                        topic_id=topic_id,
                        partitions=[
                            AssignReplicasToDirsPartitionData(partition_index=one) for one in numbers
                        ],
                    )
                    for topic_id, numbers in by_topic.items()
                ],
            )
            for directory, by_topic in by_directory.items()
        ],
    )
