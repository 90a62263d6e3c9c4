"""The loader publishes committed records in order, transactions as a whole, and snapshots."""

from typing import NamedTuple

import pytest

from barnabas.base.ids import Uuid
from barnabas.metadata.changes import Changes
from barnabas.metadata.errors import MetadataInconsistent, UnknownMetadataRecord
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import MetadataLoader
from barnabas.metadata.snapshot import records_of
from barnabas.protocol.stored import cluster_nodes as nodes
from barnabas.protocol.stored import cluster_topics as topics
from support.metadata_images import CommittedBatch, sample_batches

BEGIN = nodes.BeginTransactionRecord(name="test")
END = nodes.EndTransactionRecord()
ABORT = nodes.AbortTransactionRecord(reason="test")


class SnapshotId(NamedTuple):
    offset: int
    epoch: int


class Published:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.images: list[MetadataImage] = []
        self.changes: list[Changes] = []
        self.loader = MetadataLoader(self._on_image)
        self._next_offset = 0

    def _on_image(self, image: MetadataImage, changes: Changes) -> None:
        self.images.append(image)
        self.changes.append(changes)

    def commit(self, *records: object) -> None:
        last = self._next_offset + max(len(records), 1) - 1
        batch = CommittedBatch(
            base_offset=self._next_offset,
            last_offset=last,
            epoch=3,
            append_time_ms=50,
            records=tuple((one, 0) for one in records),
        )
        self._next_offset = last + 1
        self.loader.committed(batch)

    @property
    def features(self) -> list[tuple[int, list[str]]]:
        return [(image.offset, sorted(image.features)) for image in self.images]


def feature(name: str) -> nodes.FeatureLevelRecord:
    return nodes.FeatureLevelRecord(name=name, feature_level=1)


def test_every_batch_is_an_image() -> None:
    published = Published()

    published.commit(feature("a"), feature("b"))
    published.commit()
    published.commit(nodes.NoOpRecord())

    assert published.features == [(1, ["a", "b"]), (2, ["a", "b"]), (3, ["a", "b"])]
    assert (published.images[-1].epoch, published.images[-1].append_time_ms) == (3, 50)
    assert [one.features_changed for one in published.changes] == [True, False, False]
    assert published.loader.image is published.images[-1]


def test_a_metadata_transaction_becomes_visible_at_its_end() -> None:
    published = Published()

    published.commit(feature("a"), BEGIN, feature("b"))
    published.commit(feature("c"))
    published.commit(feature("d"), END, feature("e"))

    assert published.features == [(0, ["a"]), (6, ["a", "b", "c", "d", "e"])]


def test_an_aborted_transaction_never_shows() -> None:
    published = Published()

    published.commit(BEGIN, feature("a"))
    published.commit(feature("b"), ABORT)
    published.commit(feature("c"))

    assert published.features == [(3, []), (4, ["c"])]


def test_a_transaction_in_a_transaction_is_an_inconsistent_log() -> None:
    published = Published()
    published.commit(BEGIN)

    with pytest.raises(MetadataInconsistent, match="offset 1: a transaction is open already"):
        published.commit(BEGIN)


@pytest.mark.parametrize("record", [END, ABORT])
def test_an_end_without_a_beginning_is_an_inconsistent_log(record: object) -> None:
    published = Published()

    with pytest.raises(MetadataInconsistent, match="offset 1: no transaction is open"):
        published.commit(feature("a"), record)


def test_records_of_later_releases_stop_the_loader() -> None:
    published = Published()

    with pytest.raises(UnknownMetadataRecord):
        published.commit(object())

    assert published.images == []


def test_holding_makes_one_image_of_many_batches() -> None:
    published = Published()
    published.loader.hold()
    published.commit(feature("a"))
    published.commit(BEGIN, feature("b"))

    published.loader.release()
    published.commit(END)

    assert published.features == [(0, ["a"]), (3, ["a", "b"])]


def test_a_snapshot_replaces_the_image_and_reports_the_difference() -> None:
    before, after, gone = Uuid(b"1" * 16), Uuid(b"2" * 16), Uuid(b"3" * 16)
    published = Published()
    published.commit(
        feature("a"),
        nodes.RegisterBrokerRecord(broker_id=1),
        topics.TopicRecord(name="stays", topic_id=before),
        topics.TopicRecord(name="goes", topic_id=gone),
        topics.ConfigRecord(resource_type=2, resource_name="goes", name="retention.ms", value="1"),
    )
    published.commit(BEGIN, feature("never"))

    published.loader.load_snapshot(
        SnapshotId(100, 4),
        [
            feature("a"),
            topics.TopicRecord(name="stays", topic_id=before),
            topics.TopicRecord(name="new", topic_id=after),
        ],
    )

    image, changes = published.images[-1], published.changes[-1]
    assert (image.offset, image.epoch) == (99, 4)
    assert sorted(image.topics) == ["new", "stays"]
    assert changes.topics_changed == {after}
    assert changes.topics_deleted == {gone: published.images[0].topics["goes"]}
    assert changes.brokers_changed == {1}
    assert changes.configs_changed == {(2, "goes")}
    assert not changes.features_changed
    assert not published.loader.in_transaction


def test_a_metadata_log_of_kafka_gives_the_image_of_its_tools() -> None:
    published = Published()

    for batch in sample_batches():
        published.loader.committed(batch)

    image = published.loader.image
    assert sorted(image.topics) == [
        "__consumer_offsets", "__transaction_state", "append-time", "codecs", "compacted", "first",
        "idempotent", "rolled", "trimmed", "txn",
    ]  # fmt: skip
    assert len(image.topics["txn"].partitions) == 2
    assert image.topics["txn"].partitions[0].replicas == (1,)
    # The broker was stopped: the partition has no leader, and the ELR has its last one.
    assert image.topics["txn"].partitions[0].leader == -1
    assert image.topics["txn"].partitions[0].elr == (1,)
    assert image.config((2, "compacted")) == {  # type: ignore[arg-type]
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    }
    assert image.config((4, "")) == {"min.insync.replicas": "1"}  # type: ignore[arg-type]
    assert image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, True)
    assert image.brokers[1].endpoint("PLAINTEXT") == ("127.0.0.1", 19092)
    assert image.next_producer_id == 1000
    assert image.offset == 471


def test_the_image_of_kafkas_log_survives_being_written_out() -> None:
    published = Published()
    for batch in sample_batches():
        published.loader.committed(batch)
    image = published.loader.image

    again = Published()
    again.loader.load_snapshot(SnapshotId(image.offset + 1, image.epoch), records_of(image))

    restored = again.loader.image
    assert (restored.topics, restored.configs, restored.brokers) == (
        image.topics,
        image.configs,
        image.brokers,
    )
    assert (restored.features, restored.controllers) == (image.features, image.controllers)
    assert restored.next_producer_id == image.next_producer_id
    assert list(again.changes[-1].brokers_changed) == [1]
