"""CreateTopics, DeleteTopics and CreatePartitions, with the responses of Kafka 4.3."""

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.stored.cluster_nodes import ClearElrRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord, PartitionRecord, TopicRecord
from support.controllers import ActiveController, creatable, directory_of


def test_a_topic_is_one_batch_with_its_settings_before_its_partitions() -> None:
    world = ActiveController().with_brokers(1)
    request = CreateTopicsRequest(
        topics=[creatable("orders", 2, configs={"min.insync.replicas": "1", "segment.ms": " 1000 "})]
    )

    decision = world.decide(request)

    assert decision.atomic
    topic, first, second, clear, *partitions = decision.records
    assert isinstance(topic, TopicRecord)
    assert topic.name == "orders"
    assert first == ConfigRecord(
        resource_type=2, resource_name="orders", name="min.insync.replicas", value="1"
    )
    assert second == ConfigRecord(resource_type=2, resource_name="orders", name="segment.ms", value=" 1000 ")
    assert clear == ClearElrRecord(topic_name="orders")
    assert partitions == [
        PartitionRecord(
            partition_id=number,
            topic_id=topic.topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory_of(1)],
        )
        for number in (0, 1)
    ]


def test_deciding_changes_nothing() -> None:
    world = ActiveController().with_brokers(1)
    before = world.image

    world.decide(CreateTopicsRequest(topics=[creatable("orders")]))

    assert world.image is before
    assert world.image == world.replayed()


def test_the_response_has_the_created_topic_and_its_config_sources() -> None:
    world = ActiveController(static_config={"log.retention.hours": "2", "num.partitions": "3"}).with_brokers(
        1
    )

    (result,) = world.create(creatable("orders", 2, configs={"segment.ms": " 1000 "}))

    assert result.topic_id == world.image.topics["orders"].id
    assert (result.num_partitions, result.replication_factor, result.error_code) == (2, 1, 0)
    found = {one.name: (one.value, one.config_source) for one in result.configs}
    assert found["segment.ms"] == (" 1000 ", 1)
    # The cluster-wide default of every new cluster.
    assert found["min.insync.replicas"] == ("1", 3)
    assert found["retention.ms"] == ("7200000", 4)
    assert found["cleanup.policy"] == ("delete", 5)
    assert list(found) == sorted(found)
    assert len(found) == 33
    assert not any(one.read_only or one.is_sensitive for one in result.configs)


def test_minus_one_is_the_default() -> None:
    world = ActiveController(num_partitions=3, default_replication_factor=2).with_brokers(1, 2)

    (result,) = world.create(creatable("orders", -1, -1))

    assert (result.num_partitions, result.replication_factor) == (3, 2)
    assert [len(one.replicas) for one in world.image.topics["orders"].partitions] == [2, 2, 2]


def test_validate_only_answers_the_same_and_makes_nothing() -> None:
    world = ActiveController().with_brokers(1)

    good, bad = world.create(creatable("orders"), creatable("a b"), validate_only=True)

    assert (good.error_code, good.num_partitions) == (0, 1)
    assert good.topic_id != ZERO_UUID
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert world.image.topics == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ü", "'ü' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_names_that_no_topic_can_have(name: str, message: str) -> None:
    world = ActiveController().with_brokers(1)

    (result,) = world.create(creatable(name))

    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == f"Topic name is invalid: {message}"
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    assert result.topic_id == ZERO_UUID


def test_the_longest_name_is_allowed() -> None:
    (result,) = ActiveController().with_brokers(1).create(creatable("x" * 249))

    assert result.error_code == 0


def test_names_that_have_the_same_metrics_collide_but_not_within_one_request() -> None:
    world = ActiveController().with_brokers(1)
    assert [one.error_code for one in world.create(creatable("a.b"), creatable("a_b"))] == [0, 0]

    (result,) = world.create(creatable("a.b".replace("b", "c")), creatable("x"))[:1]
    (collision,) = world.create(creatable("a_c"))

    assert result.error_code == 0
    assert collision.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert collision.error_message == "Topic 'a_c' collides with existing topic: a.c"


def test_existing_and_duplicate_topics_do_not_affect_others() -> None:
    world = ActiveController().with_brokers(1)
    world.create(creatable("old"))

    results = world.create(creatable("old"), creatable("twice"), creatable("new"), creatable("twice"))

    assert [(one.name, one.error_code, one.error_message) for one in results] == [
        ("old", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old' already exists."),
        ("twice", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("new", 0, None),
    ]
    assert sorted(world.image.topics) == ["new", "old"]


def test_the_metadata_log_is_no_topic() -> None:
    (result,) = ActiveController().with_brokers(1).create(creatable("__cluster_metadata"))

    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == "Creation of internal topic __cluster_metadata is prohibited."


@pytest.mark.parametrize(
    ("partitions", "replicas", "code", "message"),
    [
        (
            0,
            1,
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            -2,
            1,
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            0,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            1,
            2,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be "
            "reached because only 1 broker(s) are registered.",
        ),
    ],
)
def test_numbers_that_cannot_be(partitions: int, replicas: int, code: ErrorCode, message: str) -> None:
    (result,) = ActiveController().with_brokers(1).create(creatable("orders", partitions, replicas))

    assert (result.error_code, result.error_message) == (code, message)


def test_no_topic_without_a_broker_that_is_up() -> None:
    world = ActiveController()
    world.register(1)

    (result,) = world.create(creatable("orders"))

    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced."
    )


def test_more_than_ten_thousand_partitions_fail_every_topic() -> None:
    world = ActiveController().with_brokers(1)

    results = world.create(creatable("a", 10_000), creatable("b"))

    assert [one.error_code for one in results] == [ErrorCode.POLICY_VIOLATION] * 2
    assert results[0].error_message == "Excessively large number of partitions per request."
    assert world.image.topics == {}


def test_a_number_of_partitions_from_the_wire_costs_nothing() -> None:
    (result,) = ActiveController().with_brokers(1).create(creatable("a", 2**31 - 1))

    assert result.error_code == ErrorCode.POLICY_VIOLATION


# Assignments


def test_manual_assignments_are_taken_as_they_are() -> None:
    world = ActiveController().with_brokers(1, 2, 3)

    (result,) = world.create(creatable("orders", assignments=[[3, 1], [2, 3]]))

    assert (result.num_partitions, result.replication_factor) == (2, 2)
    assert [one.replicas for one in world.image.topics["orders"].partitions] == [(3, 1), (2, 3)]
    assert [one.leader for one in world.image.topics["orders"].partitions] == [3, 2]


def test_a_fenced_replica_is_not_in_sync_and_does_not_lead() -> None:
    world = ActiveController().with_brokers(1)
    world.register(2)

    world.create(creatable("orders", assignments=[[2, 1]]))

    assert (world.partition("orders").isr, world.partition("orders").leader) == ((1,), 1)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([[1, 9]], "The manual partition assignment includes broker 9, but no such broker is registered."),
        ([[1, 1]], "The manual partition assignment includes the broker 1 more than once."),
        ([[]], "The manual partition assignment includes an empty replica list."),
        (
            [[1], [1, 2]],
            "The manual partition assignment includes a partition with 2 replica(s), but this is not "
            "consistent with previous partitions, which have 1 replica(s).",
        ),
        (
            [[3]],
            "All brokers specified in the manual partition assignment for partition 0 are fenced or in "
            "controlled shutdown.",
        ),
    ],
)
def test_assignments_that_cannot_be(assignments: list[list[int]], message: str) -> None:
    world = ActiveController().with_brokers(1, 2)
    world.register(3)

    (result,) = world.create(creatable("orders", assignments=assignments))

    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 0], "Found multiple manual partition assignments for partition 0"),
        ([1, 2], "partitions should be a consecutive 0-based integer sequence"),
    ],
)
def test_assignments_number_partitions_from_zero(numbers: list[int], message: str) -> None:
    topic = creatable("orders", assignments=[[1], [1]])
    for one, number in zip(topic.assignments, numbers, strict=True):
        one.partition_index = number

    (result,) = ActiveController().with_brokers(1).create(topic)

    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


@pytest.mark.parametrize(
    ("partitions", "replicas", "what"),
    [(1, 1, "replication factor"), (-1, 1, "replication factor"), (1, -1, "numPartitions")],
)
def test_assignments_and_counts_exclude_each_other(partitions: int, replicas: int, what: str) -> None:
    topic = CreatableTopic(
        name="orders",
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
    )

    (result,) = ActiveController().with_brokers(1).create(topic)

    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message == (
        f"A manual partition assignment was specified, but {what} was not set to -1."
    )


# Settings


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("no.such.thing", "1", "Unknown topic config name: no.such.thing"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
        (
            "retention.ms",
            "many",
            "Invalid value many for configuration retention.ms: Not a number of type LONG",
        ),
        (
            "retention.ms",
            " -2 ",
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            "min.insync.replicas",
            "0",
            "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "1.5",
            "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "-0.5",
            "Invalid value -0.5 for configuration min.cleanable.dirty.ratio: Value must be at least 0",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "compression.gzip.level",
            "-5",
            "Invalid value -5 for configuration compression.gzip.level: Value must be between 1 and 9 or "
            "equal to -1",
        ),
        (
            "cleanup.policy",
            "compact,keep",
            "Invalid value keep for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "message.timestamp.type",
            "Never",
            "Invalid value Never for configuration message.timestamp.type: String must be one of: "
            "CreateTime, LogAppendTime",
        ),
        ("remote.storage.enable", "true", "Invalid value true for configuration remote.storage.enable: "),
    ],
)
def test_settings_that_no_topic_can_have(name: str, value: str | None, message: str) -> None:
    world = ActiveController().with_brokers(1)

    (result,) = world.create(creatable("orders", configs={name: value}))

    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert result.error_message.startswith(message)
    assert world.image.topics == {}


def test_settings_of_a_topic_must_fit_those_of_the_brokers() -> None:
    world = ActiveController(static_config={"log.cleaner.max.compaction.lag.ms": "5"}).with_brokers(1)

    (result,) = world.create(creatable("orders", configs={"min.compaction.lag.ms": "6"}))

    assert result.error_code == ErrorCode.INVALID_CONFIG


# Deletion


def deleted(world: ActiveController, *topics: str | bytes | DeleteTopicState) -> list[tuple[object, ...]]:
    asked = []
    for one in topics:
        match one:
            case str():
                asked.append(DeleteTopicState(name=one))
            case bytes():
                asked.append(DeleteTopicState(topic_id=Uuid(one)))
            case DeleteTopicState():
                asked.append(one)
    response = world.ask(DeleteTopicsRequest(topics=asked))
    return [(one.name, one.topic_id, one.error_code, one.error_message) for one in response.responses]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    world = ActiveController().with_brokers(1)
    a, b = (one.topic_id for one in world.create(creatable("a", configs={"segment.ms": "1"}), creatable("b")))

    results = deleted(world, "a", b)

    assert results == [("a", a, 0, None), ("b", b, 0, None)]
    assert world.image.topics == {}
    assert all(resource.type != 2 for resource in world.image.configs)
    assert world.image == world.replayed()


def test_names_of_the_old_versions_are_topics_too() -> None:
    world = ActiveController().with_brokers(1)
    world.create(creatable("a"))

    response = world.ask(DeleteTopicsRequest(topic_names=["a", "b"]))

    assert [one.error_code for one in response.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_missing_topics() -> None:
    world = ActiveController().with_brokers(1)
    unknown = Uuid(b"u" * 16)

    assert deleted(world, "a", unknown, "") == [
        ("a", ZERO_UUID, 3, "This server does not host this topic-partition."),
        (None, unknown, 100, "This server does not host this topic ID."),
        ("", ZERO_UUID, 3, "This server does not host this topic-partition."),
    ]


def test_a_topic_that_is_named_in_two_ways_or_none_stays() -> None:
    world = ActiveController().with_brokers(1)
    a, b, c = (one.topic_id for one in world.create(creatable("a"), creatable("b"), creatable("c")))
    both = DeleteTopicState(name="a", topic_id=a)

    results = deleted(world, both, DeleteTopicState(), b, b, "a", "a", c, "c")

    assert results == [
        ("a", a, 42, "You may not specify both topic name and topic id."),
        (None, ZERO_UUID, 42, "Neither topic name nor id were specified."),
        (None, b, 42, "Duplicate topic id."),
        ("a", ZERO_UUID, 42, "Duplicate topic name."),
        ("c", c, 42, "The provided topic name maps to an ID that was already supplied."),
    ]
    assert sorted(world.image.topics) == ["a", "b", "c"]


def test_deletion_can_be_switched_off() -> None:
    world = ActiveController(delete_topic_enable=False).with_brokers(1)
    world.create(creatable("a"))

    assert [one[2] for one in deleted(world, "a")] == [ErrorCode.TOPIC_DELETION_DISABLED]
    assert "a" in world.image.topics


# Partitions


def grown(
    world: ActiveController, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> list[tuple[object, ...]]:
    response = world.ask(CreatePartitionsRequest(topics=list(topics), validate_only=validate_only))
    return [(one.name, one.error_code, one.error_message) for one in response.results]


def to(name: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsTopic:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given)


def test_a_topic_grows_with_as_many_replicas_as_it_has() -> None:
    world = ActiveController().with_brokers(1, 2)
    world.create(creatable("orders", 1, 2))
    before = world.partition("orders")

    assert grown(world, to("orders", 3)) == [("orders", 0, None)]

    partitions = world.image.topics["orders"].partitions
    assert [len(one.replicas) for one in partitions] == [2, 2, 2]
    assert partitions[0] is before


def test_a_topic_does_not_shrink() -> None:
    world = ActiveController().with_brokers(1)
    world.create(creatable("orders", 3))

    assert grown(world, to("orders", 3), to("other", 2)) == [
        ("orders", 37, "Topic already has 3 partition(s)."),
        ("other", 3, None),
    ]
    assert grown(world, to("orders", 2)) == [
        ("orders", 37, "The topic orders currently has 3 partition(s); 2 would not be an increase.")
    ]
    assert len(world.image.topics["orders"].partitions) == 3


def test_new_partitions_can_be_assigned_and_validated_only() -> None:
    world = ActiveController().with_brokers(1, 2)
    world.create(creatable("orders", 1))

    assert grown(world, to("orders", 2, [[2]]), validate_only=True) == [("orders", 0, None)]
    assert len(world.image.topics["orders"].partitions) == 1
    assert grown(world, to("orders", 2, [[2]])) == [("orders", 0, None)]
    assert world.partition("orders", 1).replicas == (2,)


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([], "Attempted to add 2 additional partition(s), but only 0 assignment(s) were specified."),
        ([[1]], "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        (
            [[1], [9]],
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            [[1], [1, 2]],
            "The manual partition assignment includes a partition with 2 replica(s), but this is not "
            "consistent with previous partitions, which have 1 replica(s).",
        ),
    ],
)
def test_assignments_of_new_partitions_that_cannot_be(assignments: list[list[int]], message: str) -> None:
    world = ActiveController().with_brokers(1, 2)
    world.create(creatable("orders", 1))

    assert grown(world, to("orders", 3, assignments)) == [("orders", 39, message)]


def test_a_topic_that_is_named_twice_does_not_grow_and_the_others_do() -> None:
    world = ActiveController().with_brokers(1)
    world.create(creatable("a"), creatable("b"))

    assert grown(world, to("a", 2), to("b", 2), to("a", 3)) == [
        ("a", 42, "Duplicate topic name."),
        ("b", 0, None),
    ]


def test_a_topic_does_not_grow_by_more_than_a_request_may_change() -> None:
    world = ActiveController().with_brokers(1)
    world.create(creatable("a"))

    assert grown(world, to("a", 2**31 - 1))[0][1] == ErrorCode.POLICY_VIOLATION
    assert len(world.image.topics["a"].partitions) == 1
