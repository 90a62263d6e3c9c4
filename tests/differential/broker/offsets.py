"""Where partitions begin and end: ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers."""

from barnabas.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from differential.broker.batches import batch
from differential.broker.sending import send
from differential.broker.talk import Family, Talk

OFFSETS = Family("offsets")

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -2, -1, -3, -4, -5, -6


def list_offsets(
    name: str, timestamp: int, *, partition: int = 0, epoch: int = -1, isolation: int = 0, replica: int = -1
) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=name, partitions=[asked])],
        timeout_ms=5_000,
    )


def delete_records(name: str, offset: int, *, partition: int = 0) -> DeleteRecordsRequest:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    topic = DeleteRecordsTopic(name=name, partitions=[asked])
    return DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)


def epoch_end(
    name: str, epoch: int, *, current: int = -1, partition: int = 0, replica: int = -2
) -> OffsetForLeaderEpochRequest:
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic=name, partitions=[asked])
    return OffsetForLeaderEpochRequest(replica_id=replica, topics=[topic])


def fill(talk: Talk, name: str) -> None:
    """Three batches of three records. Times go up within a batch; the second batch is the latest."""
    for distance in (0, 2_000, 1_000):
        send(talk, name, batch(b"a", b"b", b"c", at_ms=talk.base_ms + distance))


@OFFSETS.story
def list_offsets_of_an_empty_partition(talk: Talk) -> None:
    talk.create("empty")
    for timestamp in (EARLIEST, LATEST, 0, talk.base_ms):
        name = "the story's time" if timestamp == talk.base_ms else str(timestamp)
        talk.same(f"at {name}", list_offsets("empty", timestamp))
    talk.same("at -3", list_offsets("empty", MAX_TIMESTAMP), range(7, 12))
    talk.same("at -4", list_offsets("empty", EARLIEST_LOCAL), range(8, 12))
    talk.same("at -5", list_offsets("empty", LATEST_TIERED), range(9, 12))
    talk.same("at -6", list_offsets("empty", EARLIEST_PENDING), [11])


@OFFSETS.story
def list_offsets_of_a_filled_partition(talk: Talk) -> None:
    talk.create("filled")
    fill(talk, "filled")
    talk.same("earliest", list_offsets("filled", EARLIEST))
    talk.same("latest", list_offsets("filled", LATEST))
    for special in (MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING):
        talk.same(f"special {special}", list_offsets("filled", special))
    talk.same("special -7", list_offsets("filled", -7), [7, 11])
    for distance in (-1, 0, 1, 2, 3, 1_000, 2_001, 2_002, 2_003, 10_000):
        asked = list_offsets("filled", talk.base_ms + distance)
        talk.same(f"by time {distance:+d}", asked, [1, 4, 11])
    talk.same("by the first time of all", list_offsets("filled", 0), [1, 4, 11])
    talk.same("by the last time of all", list_offsets("filled", 2**63 - 1), [1, 11])
    for isolation in (1, 2, -1):
        for timestamp in (EARLIEST, LATEST):
            asked = list_offsets("filled", timestamp, isolation=isolation)
            talk.same(f"isolation {isolation} at {timestamp}", asked, [2, 6, 11])
    for replica in (-2, 0, 1, 7):
        talk.same(f"as replica {replica}", list_offsets("filled", LATEST, replica=replica), [1, 11])


@OFFSETS.story
def list_offsets_of_the_wrong_place(talk: Talk) -> None:
    talk.create("placed")
    talk.same("unknown topic", list_offsets("nobody-made-this", LATEST))
    talk.same("unknown partition", list_offsets("placed", LATEST, partition=1))
    talk.same("negative partition", list_offsets("placed", LATEST, partition=-1), [1, 11])
    talk.same("bad name", list_offsets("a b", LATEST), [1, 11])
    talk.same("the right epoch", list_offsets("placed", LATEST, epoch=0), range(4, 12))
    talk.same("a newer epoch", list_offsets("placed", LATEST, epoch=5), range(4, 12))
    talk.same("a newer epoch, by time", list_offsets("placed", 0, epoch=5), [4, 11])
    talk.same("a negative epoch", list_offsets("placed", LATEST, epoch=-5), [4, 11])
    twice = list_offsets("placed", LATEST)
    twice.topics[0].partitions += list_offsets("placed", EARLIEST).topics[0].partitions
    talk.same("a partition twice", twice, [1, 5, 11])
    topics = list_offsets("placed", LATEST)
    topics.topics += list_offsets("placed", EARLIEST).topics
    talk.same("a topic twice", topics, [1, 5, 11])
    talk.same("nothing", ListOffsetsRequest(replica_id=-1, topics=[]), [1, 11])


@OFFSETS.story
def delete_records_up_to_an_offset(talk: Talk) -> None:
    talk.create("trimmed")
    fill(talk, "trimmed")
    talk.same("zero", delete_records("trimmed", 0))
    talk.ask("in the middle of a batch", delete_records("trimmed", 4))
    talk.ask("earliest after it", list_offsets("trimmed", EARLIEST))
    talk.ask("earliest local after it", list_offsets("trimmed", EARLIEST_LOCAL))
    talk.ask("by a time before it", list_offsets("trimmed", 0))
    talk.ask("below the start", delete_records("trimmed", 2))
    talk.ask("past the end", delete_records("trimmed", 10))
    talk.ask("negative", delete_records("trimmed", -2))
    talk.ask("to the high watermark", delete_records("trimmed", -1))
    talk.ask("earliest after all", list_offsets("trimmed", EARLIEST))
    talk.ask("latest after all", list_offsets("trimmed", LATEST))
    talk.ask("largest time after all", list_offsets("trimmed", MAX_TIMESTAMP))
    talk.ask("by time after all", list_offsets("trimmed", 0))
    talk.ask("the end itself", delete_records("trimmed", 9))
    send(talk, "trimmed", batch(b"d", at_ms=talk.base_ms))
    talk.ask("latest after one more", list_offsets("trimmed", LATEST))


@OFFSETS.story
def delete_records_of_the_wrong_place(talk: Talk) -> None:
    talk.create("kept", cleanup_policy="compact")
    fill(talk, "kept")
    talk.same("of a compacted topic", delete_records("kept", 1))
    talk.same("unknown topic", delete_records("nobody-made-this", 1))
    talk.same("unknown partition", delete_records("kept", 1, partition=1))
    talk.same("negative partition", delete_records("kept", 1, partition=-1))
    talk.create("kept-and-deleted", cleanup_policy="compact,delete")
    fill(talk, "kept-and-deleted")
    talk.ask("of a compacted and deleted topic", delete_records("kept-and-deleted", 1))
    talk.ask("nothing", DeleteRecordsRequest(topics=[], timeout_ms=1_000))


@OFFSETS.story
def offset_for_leader_epoch(talk: Talk) -> None:
    talk.create("epochs")
    talk.same("of an empty log", epoch_end("epochs", 0))
    fill(talk, "epochs")
    for epoch in (0, 1, 5, -1, -2):
        talk.same(f"epoch {epoch}", epoch_end("epochs", epoch))
    talk.same("right current epoch", epoch_end("epochs", 0, current=0))
    talk.same("newer current epoch", epoch_end("epochs", 0, current=5))
    talk.same("unknown topic", epoch_end("nobody-made-this", 0))
    talk.same("unknown partition", epoch_end("epochs", 0, partition=1))
    talk.same("negative partition", epoch_end("epochs", 0, partition=-1))
    talk.same("as a consumer", epoch_end("epochs", 0, replica=-1), [3, 4])
    talk.same("as a replica", epoch_end("epochs", 0, replica=1), [3, 4])
    talk.same("nothing", OffsetForLeaderEpochRequest(topics=[]))
