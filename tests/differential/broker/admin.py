"""The cluster's own affairs: DescribeLogDirs, ElectLeaders, DescribeQuorum, UpdateFeatures."""

from barnabas.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.cluster import ApiVersionsRequest
from barnabas.protocol.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.protocol.messages.quorum import (
    DescribeQuorumPartitionData,
    DescribeQuorumRequest,
    DescribeQuorumTopicData,
)
from barnabas.protocol.messages.replicas import ElectLeadersRequest, TopicPartitions
from differential.broker.offsets import fill
from differential.broker.talk import Family, Talk

ADMIN = Family("admin")
PREFERRED, UNCLEAN = 0, 1
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
METADATA_LOG = "__cluster_metadata"


def log_dirs(*partitions: tuple[str, int]) -> DescribeLogDirsRequest:
    """No partitions mean all of them."""
    topics = [DescribableLogDirTopic(topic=name, partitions=[index]) for name, index in partitions]
    return DescribeLogDirsRequest(topics=topics or None)


def elect(kind: int, *partitions: tuple[str, int], all_of_them: bool = False) -> ElectLeadersRequest:
    topics = [TopicPartitions(topic=name, partitions=[index]) for name, index in partitions]
    return ElectLeadersRequest(
        election_type=kind, topic_partitions=None if all_of_them else topics, timeout_ms=10_000
    )


def quorum(name: str, *partitions: int) -> DescribeQuorumRequest:
    asked = [DescribeQuorumPartitionData(partition_index=index) for index in partitions]
    return DescribeQuorumRequest(topics=[DescribeQuorumTopicData(topic_name=name, partitions=asked)])


def feature(
    name: str, level: int, kind: int = UPGRADE, *, validate_only: bool = False
) -> UpdateFeaturesRequest:
    row = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[row], validate_only=validate_only)


@ADMIN.story
def describe_log_dirs(talk: Talk) -> None:
    talk.create("stored", 2)
    fill(talk, "stored")
    talk.same("everything", log_dirs())
    talk.same("one partition", log_dirs(("stored", 0)))
    talk.ask("an empty partition", log_dirs(("stored", 1)))
    talk.ask("unknown partition", log_dirs(("stored", 7)))
    talk.ask("unknown topic", log_dirs(("nobody-made-this", 0)))
    talk.ask("the metadata log", log_dirs((METADATA_LOG, 0)))
    talk.ask("an empty list", DescribeLogDirsRequest(topics=[]))


@ADMIN.story
def elect_leaders(talk: Talk) -> None:
    talk.create("elected", 2)
    talk.same("preferred", elect(PREFERRED, ("elected", 0)))
    talk.same("unclean", elect(UNCLEAN, ("elected", 0)), [1, 2])
    talk.same("all preferred", elect(PREFERRED, all_of_them=True))
    talk.same("all unclean", elect(UNCLEAN, all_of_them=True), [1, 2])
    talk.same("unknown kind", elect(2, ("elected", 0)), [1, 2])
    talk.same("unknown partition", elect(PREFERRED, ("elected", 9)))
    talk.same("unknown topic", elect(PREFERRED, ("nobody-made-this", 0)))
    talk.ask("negative partition", elect(PREFERRED, ("elected", -1)))
    talk.ask("bad name", elect(PREFERRED, ("a b", 0)))
    talk.same("none", elect(PREFERRED))
    two = ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="elected", partitions=[0, 1, 5])], timeout_ms=1_000
    )
    talk.ask("several", two)


@ADMIN.story
def describe_quorum(talk: Talk) -> None:
    talk.same("the metadata log", quorum(METADATA_LOG, 0))
    talk.same("another partition", quorum(METADATA_LOG, 1))
    talk.same("two partitions", quorum(METADATA_LOG, 0, 1))
    talk.same("another topic", quorum("elected", 0))
    talk.same("no partitions", quorum(METADATA_LOG))
    talk.same("no topics", DescribeQuorumRequest(topics=[]))


@ADMIN.story
def update_features(talk: Talk) -> None:
    talk.same("unknown", feature("no.such.feature", 1), [0, 1, 2])
    talk.same("the same level", feature("metadata.version", 30))
    talk.same("above what is supported", feature("metadata.version", 31))
    talk.same("upgrade that is a downgrade", feature("metadata.version", 29), [1, 2])
    talk.same(
        "safe downgrade, validated",
        feature("metadata.version", 29, SAFE_DOWNGRADE, validate_only=True),
        [1, 2],
    )
    talk.same(
        "below what is supported",
        feature("metadata.version", 1, UNSAFE_DOWNGRADE, validate_only=True),
        [1, 2],
    )
    talk.same("negative level", feature("metadata.version", -1), [1, 2])
    talk.same("level zero as an upgrade", feature("group.version", 0), [1, 2])
    talk.same("delete, validated", feature("group.version", 0, SAFE_DOWNGRADE, validate_only=True), [1, 2])
    talk.same("unknown kind", feature("group.version", 1, 0), [1, 2])
    talk.same("unknown kind of change", feature("group.version", 1, 9), [1, 2])
    talk.same("kraft.version, validated", feature("kraft.version", 1, validate_only=True), [1, 2])
    talk.same("nothing", UpdateFeaturesRequest(timeout_ms=1_000, feature_updates=[]))
    twice = feature("group.version", 1)
    twice.feature_updates += feature("group.version", 0, SAFE_DOWNGRADE).feature_updates
    talk.same("one twice", twice, [1, 2])
    both = feature("group.version", 1)
    both.feature_updates += feature("no.such.feature", 1).feature_updates
    talk.same("one good, one unknown", both, [1, 2])
    talk.ask("downgraded", feature("streams.version", 0, SAFE_DOWNGRADE))
    talk.settle()
    asked = ApiVersionsRequest(client_software_name="wire-client", client_software_version="1.0")
    talk.keep("after the downgrade", _features(talk, asked))
    talk.ask("upgraded again", feature("streams.version", 1))
    talk.settle()
    talk.keep("after the upgrade", _features(talk, asked))


def _features(talk: Talk, asked: ApiVersionsRequest) -> list[list[object]]:
    answer = talk.quietly(asked, 4)
    return sorted(
        [row.name, row.max_version_level, row.min_version_level] for row in answer.finalized_features
    )
