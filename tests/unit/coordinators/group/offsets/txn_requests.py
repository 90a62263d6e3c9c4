"""Commits in a transaction, as a producer asks for them."""

from typing import Any

from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

VERSION = 5
PRODUCER = 70
EPOCH = 3


def txn_request(
    partitions: dict[tuple[str, int], int], *, group: str = "g", metadata: str | None = "", **facts: Any
) -> TxnOffsetCommitRequest:
    """A commit of these offsets; `facts` are fields of the request."""
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group,
        producer_id=facts.pop("producer_id", PRODUCER),
        producer_epoch=facts.pop("producer_epoch", EPOCH),
        member_id=facts.pop("member_id", ""),
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for (topic, partition), offset in partitions.items()
        ],
        **facts,
    )
