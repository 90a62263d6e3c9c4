"""What a client asks first: ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions."""

from barnabas.base.ids import Uuid
from barnabas.protocol.messages.cluster import (
    ApiVersionsRequest,
    Cursor,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from differential.broker.talk import Family, Talk

CLUSTER = Family("cluster")
NO_TOPIC = Uuid(b"there is no such")


def by_name(*names: str, create: bool = False, **more: bool) -> MetadataRequest:
    asked = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=create, **more)


def by_id(*ids: Uuid, name: str | None = None) -> MetadataRequest:
    asked = [MetadataRequestTopic(topic_id=topic_id, name=name) for topic_id in ids]
    return MetadataRequest(topics=asked, allow_auto_topic_creation=False)


def partitions_of(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> object:
    asked = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=limit, cursor=cursor)


def software(name: str, version: str) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@CLUSTER.story
def api_versions(talk: Talk) -> None:
    talk.same("a good client", software("wire-client", "1.0"))
    talk.same("no software name", software("", "1.0"), [3, 4])
    talk.same("no software version", software("wire-client", ""), [3, 4])
    talk.same("a name with a space", software("wire client", "1.0"), [3, 4])
    talk.same("a name that ends with a dash", software("wire-", "1.0"), [3, 4])
    talk.same("a name that starts with a dot", software(".wire", "1.0"), [3, 4])
    talk.same("dots and dashes inside", software("a.b-c", "1.0-SNAPSHOT.2"), [3, 4])
    talk.same("a version with a plus", software("wire-client", "1.0+2"), [3, 4])
    talk.same("a name with an umlaut", software("käfka", "1"), [3, 4])


@CLUSTER.story
def describe_cluster(talk: Talk) -> None:
    talk.same("plain", DescribeClusterRequest())
    talk.same("authorized operations", DescribeClusterRequest(include_cluster_authorized_operations=True))
    talk.same("of controllers", DescribeClusterRequest(endpoint_type=2), [1, 2])
    talk.same("of something else", DescribeClusterRequest(endpoint_type=3), [1, 2])
    talk.same("with fenced brokers", DescribeClusterRequest(include_fenced_brokers=True), [2])


@CLUSTER.story
def metadata_without_topics(talk: Talk) -> None:
    talk.same("no topics", MetadataRequest(topics=[]))
    talk.same("all topics", MetadataRequest(topics=None), range(1, 14))


@CLUSTER.story
def metadata_by_name(talk: Talk) -> None:
    talk.create("named", 3)
    talk.same("one topic", by_name("named", create=True), range(4))
    talk.same("one topic, no creation", by_name("named"), range(4, 14))
    talk.same("twice the same", by_name("named", "named"), range(4, 14))
    talk.same("unknown", by_name("named", "nobody-made-this"), range(4, 14))
    talk.same("the longest name", by_name("x" * 249), [4, 12, 13])
    for name in ("", ".", "..", "with space", "a/b", "ü", "x" * 250):
        talk.same(f"name {name[:10]!r} of {len(name)}", by_name(name), [4, 12, 13])
        talk.same(f"name {name[:10]!r} of {len(name)}, creation allowed", by_name(name, create=True), [4, 12])
    talk.same(
        "authorized operations", by_name("named", include_topic_authorized_operations=True), [8, 10, 13]
    )
    operations = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    talk.same("authorized operations of the cluster", operations, [8, 10])
    talk.same("all topics", MetadataRequest(topics=None), [1, 5, 9, 12])
    talk.same("an empty list", MetadataRequest(topics=[]), [0, 1, 12])


@CLUSTER.story
def metadata_creates_topics(talk: Talk) -> None:
    for version in (0, 1, 4, 8, 12):
        name = f"made-by-metadata-{version}"
        talk.ask(f"first v{version}", by_name(name, create=True), version)
        talk.led(name, [0])
        talk.ask(f"then v{version}", by_name(name, create=True), version)
    talk.ask("the longest name", by_name("x" * 249, create=True), 12)
    talk.led("x" * 249, [0])
    talk.ask("the longest name, made", by_name("x" * 249, create=True), 12)
    talk.ask("not allowed", by_name("not-made", create=False), 12)
    talk.ask("still not there", by_name("not-made", create=False), 12)
    talk.ask("collides with dots", by_name("made.by.metadata-0", create=True), 12)


@CLUSTER.story
def metadata_by_id(talk: Talk) -> None:
    topic_id = talk.create("by-id", 2)
    talk.same("known", by_id(topic_id), [12, 13])
    talk.same("known, before names may be null", by_id(topic_id), [10, 11])
    talk.same("unknown", by_id(NO_TOPIC), [12, 13])
    talk.same("known and unknown", by_id(topic_id, NO_TOPIC), [12, 13])
    talk.same("id and name", by_id(topic_id, name="by-id"), [10, 11, 12, 13])
    talk.same("id and another name", by_id(topic_id, name="named"), [12, 13])
    zero = MetadataRequest(topics=[MetadataRequestTopic(name=None)], allow_auto_topic_creation=False)
    talk.same("neither id nor name", zero, [12, 13])
    mixed = [MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(name="named")]
    talk.same("one by id, one by name", MetadataRequest(topics=mixed), [12, 13])


@CLUSTER.story
def describe_topic_partitions(talk: Talk) -> None:
    for name in ("pages-a", "pages-b"):
        talk.create(name, 3)
    talk.ask("two topics", partitions_of("pages-b", "pages-a"))
    talk.ask("twice the same", partitions_of("pages-a", "pages-a"))
    talk.ask("unknown", partitions_of("pages-a", "nobody-made-this"))
    talk.ask("bad name", partitions_of("a/b", ""))
    talk.ask("limit of one", partitions_of("pages-a", "pages-b", limit=1))
    talk.ask("limit of four", partitions_of("pages-a", "pages-b", limit=4))
    talk.ask("limit of three, to the end of a topic", partitions_of("pages-a", "pages-b", limit=3))
    talk.ask("limit of zero", partitions_of("pages-a", limit=0))
    talk.ask("limit below zero", partitions_of("pages-a", limit=-1))
    talk.ask("limit above the most", partitions_of("pages-a", limit=1_000_000))
    for topic, index in (("pages-a", 2), ("pages-b", 1), ("pages-a", 3), ("pages-a", -1), ("pages-ab", 0)):
        at = Cursor(topic_name=topic, partition_index=index)
        talk.ask(f"from {topic} {index}", partitions_of("pages-a", "pages-b", cursor=at))
    talk.ask("cursor past all", partitions_of("pages-a", cursor=Cursor(topic_name="z", partition_index=0)))
    talk.ask(
        "cursor, and nothing asked", partitions_of(cursor=Cursor(topic_name="pages-b", partition_index=2))
    )
    at = Cursor(topic_name="gone", partition_index=1)
    talk.ask("cursor at an unknown topic that is asked", partitions_of("gone", "pages-a", cursor=at))
    talk.ask("all topics, first page", partitions_of(limit=2))
