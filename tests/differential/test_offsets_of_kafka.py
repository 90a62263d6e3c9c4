"""The committed offsets that Kafka 4.3.0 left in its log are read as a client read them from Kafka."""

from collections.abc import Iterator
from random import Random

import pytest

from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.offsets.offsets import Offsets
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.group_offsets import OffsetFetchRequestGroup
from barnabas.protocol.stored.framing import CONSUMER_OFFSETS
from barnabas.records.header import batch_headers
from support.kafka.sample import expected_reads, sample_files

pytestmark = pytest.mark.kernel


def batches() -> Iterator[bytes]:
    for name, data in sample_files().items():
        if name.startswith(CONSUMER_OFFSETS.name) and name.endswith(".log"):
            for at, header in batch_headers(data):
                yield data[at : at + header.size]


def no_offsets() -> tuple[Offsets, ShardContext]:
    context = ShardContext(GroupSettings(), Random(1))
    return GroupShard(context).offsets, context


def committed(offsets: Offsets, group: str) -> dict[str, tuple[int, int]]:
    """Offset and error code by partition, as somebody reads them who wants no unstable ones."""
    found = offsets.fetch(OffsetFetchRequestGroup(group_id=group, topics=None), require_stable=True)
    assert found.error_code == ErrorCode.NONE
    return {
        f"{topic.name}-{one.partition_index}": (one.committed_offset, one.error_code)
        for topic in found.topics
        for one in topic.partitions
    }


def test_groups_and_offsets_equal_those_of_a_client() -> None:
    offsets, context = no_offsets()

    others = [one for batch in batches() for one in offsets.replay(batch)]
    offsets.loaded()

    groups = expected_reads()["groups"]
    assert {group: committed(offsets, group) for group in context.groups} == {
        group: {partition: (offset, ErrorCode.NONE) for partition, offset in partitions.items()}
        for group, partitions in groups.items()
    }
    assert {type(CONSUMER_OFFSETS.decode_key(key)).__name__ for key, _ in others} >= {
        "GroupMetadataKey",
        "ConsumerGroupMetadataKey",
    }


def test_offsets_of_a_transaction_wait_for_its_marker() -> None:
    seen = []
    offsets, _ = no_offsets()
    for batch in batches():
        offsets.replay(batch)
        offsets.loaded()
        now = committed(offsets, "classic-group").get("txn-0")
        if now is not None and now not in seen[-1:]:
            seen.append(now)

    assert seen == [(32, ErrorCode.NONE), (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), (32, ErrorCode.NONE)]
