"""The actions of `barnabas topics`, one function each."""

from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import format_uuid
from barnabas.cli.option_parser import Options
from barnabas.cli.tool import ToolFailed, note, print_json, print_lines
from barnabas.cli.topic import values
from barnabas.cli.topic.patterns import INTERNAL_TOPICS, TopicPattern

if TYPE_CHECKING:
    from barnabas.cli.topic.description import Described, Moving
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.topic_descriptions import TopicDescription
    from barnabas.client.admin.topics import TopicListing

REPLICATION_FACTOR_MAX: Final = 0x7FFF
_COLLIDING: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could"
    " collide. To avoid issues it is best to use either, but not both."
)


# Selection of topics


async def _matching(admin: "Admin", options: Options) -> "dict[str, TopicListing]":
    internal = not options.exclude_internal
    topics = await admin.list_topics(internal=internal)
    if options.topic is not None:
        pattern = TopicPattern(options.topic)
        return {name: topic for name, topic in topics.items() if pattern.allows(name, internal=internal)}
    return {name: topic for name, topic in topics.items() if internal or name not in INTERNAL_TOPICS}


async def _existing(admin: "Admin", options: Options) -> "dict[str, TopicListing]":
    """Return the matching topics. ToolFailed if --topic matches none, unless --if-exists is given."""
    topics = await _matching(admin, options)
    if not topics and options.topic and not options.if_exists:
        raise ToolFailed(f"Topic '{options.topic}' does not exist as expected")
    return topics


# List


async def list_topics(admin: "Admin", options: Options) -> None:
    topics = await _matching(admin, options)
    if options.json:
        print_json({"topics": [_listed(topic) for topic in topics.values()]})
    else:
        # Without topics Kafka prints an empty line, too.
        print("\n".join(topics))


def _listed(topic: "TopicListing") -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topicId": None if topic.topic_id is None else format_uuid(topic.topic_id),
        "internal": topic.internal,
        "partitionCount": topic.partitions,
    }


# Create


async def create(admin: "Admin", options: Options) -> None:
    from barnabas.client.errors import Refused
    from barnabas.protocol.error_codes import ErrorCode

    name = options.topic
    given = _new_topic(options)
    if "." in name or "_" in name:
        note(_COLLIDING) if options.json else print(_COLLIDING)
    try:
        made = await admin.create_topic(name, **given)
    except Refused as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS or not options.if_not_exists:
            raise
        if options.json:
            print_json({"topic": name, "created": False})
        return
    if options.json:
        topic_id = None if made.topic_id is None else format_uuid(made.topic_id)
        counts = {"partitionCount": made.partitions, "replicationFactor": made.replication_factor}
        print_json({"topic": name, "created": True, "topicId": topic_id, **counts})
    else:
        print(f"Created topic {name}.")


def _new_topic(options: Options) -> dict[str, Any]:
    assignment = values.parse_assignment(options.replica_assignment) if options.replica_assignment else None
    settings = values.parse_settings(options.config)
    factor = options.replication_factor
    if factor is not None and not 1 <= factor <= REPLICATION_FACTOR_MAX:
        raise ToolFailed(f"The replication factor must be between 1 and {REPLICATION_FACTOR_MAX} inclusive")
    if options.partitions is not None and options.partitions < 1:
        raise ToolFailed("The partitions must be greater than 0")
    new: dict[str, Any] = {"assignment": assignment, "settings": settings}
    if options.partitions is not None:
        new["partitions"] = options.partitions
    if factor is not None:
        new["replication_factor"] = factor
    return new


# Alter and delete


async def alter(admin: "Admin", options: Options) -> None:
    from barnabas.client.admin.topics import NewPartitions

    assignment = values.parse_assignment(options.replica_assignment) if options.replica_assignment else None
    wanted = {}
    for name, topic in (await _existing(admin, options)).items():
        # Existing partitions keep their replicas.
        new = None if assignment is None else list(assignment.values())[topic.partitions :]
        wanted[name] = NewPartitions(total=options.partitions, assignments=new)
    if wanted:
        await admin.create_partitions_of(wanted)
    if options.json:
        print_json({"altered": list(wanted), "partitionCount": options.partitions})


async def delete(admin: "Admin", options: Options) -> None:
    names = list(await _existing(admin, options))
    if names:
        await admin.delete_topics(names)
    if options.json:
        print_json({"deleted": names})


# Describe


async def describe(admin: "Admin", options: Options) -> None:
    from barnabas.cli.topic import description

    filters = description.Filters(
        under_replicated=options.under_replicated_partitions,
        unavailable=options.unavailable_partitions,
        under_min_isr=options.under_min_isr_partitions,
        at_min_isr=options.at_min_isr_partitions,
        overrides_only=options.topics_with_overrides,
    )
    described = await _described(admin, await _topics_to_describe(admin, options))
    if options.json:
        print_json(description.document(described, filters))
    else:
        print_lines(description.lines(described, filters))


async def _topics_to_describe(admin: "Admin", options: Options) -> "list[TopicDescription]":
    from barnabas.client.admin.topic_descriptions import PAGE_PARTITIONS
    from barnabas.client.admin.topics import Topic

    topic_id = values.parse_topic_id(options.topic_id) if options.topic_id is not None else None
    wanted: list[Topic]
    if topic_id is not None and values.is_given(topic_id):
        listed = await admin.list_topics(internal=not options.exclude_internal)
        wanted = [topic_id] if any(each.topic_id == topic_id for each in listed.values()) else []
        if not wanted and not options.if_exists:
            raise ToolFailed(f"TopicId '{options.topic_id}' does not exist as expected")
    else:
        wanted = [*await _existing(admin, options)]
    if not wanted:
        return []
    limit = options.partition_size_limit_per_response
    found = await admin.describe_topics(wanted, page_partitions=PAGE_PARTITIONS if limit is None else limit)
    return list(found.values())


async def _described(admin: "Admin", topics: "list[TopicDescription]") -> "list[Described]":
    from barnabas.cli.topic.description import Described
    from barnabas.client.admin.configs import topic_resource

    if not topics:
        return []
    settings = await admin.describe_configs([topic_resource(topic.name) for topic in topics])
    live = frozenset((await admin.describe_cluster()).nodes)
    moving = await _moving(admin)
    return [
        Described(
            topic=topic,
            settings=settings[topic_resource(topic.name)],
            moving=moving.get(topic.name, {}),
            live_brokers=live,
        )
        for topic in topics
    ]


async def _moving(admin: "Admin") -> "dict[str, dict[int, Moving]]":
    """Return ongoing reassignments; none if the broker does not support or allow the request."""
    from barnabas.cli.topic.description import Moving
    from barnabas.client.errors import UnsupportedByBroker, refused
    from barnabas.protocol.error_codes import ErrorCode
    from barnabas.protocol.messages.replicas import ListPartitionReassignmentsRequest

    try:
        answer = await admin.cluster.ask(ListPartitionReassignmentsRequest())
    except UnsupportedByBroker:
        return {}
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return {}
    if answer.error_code != ErrorCode.NONE:
        raise refused(answer.error_code, about="reassignments", message=answer.error_message)
    return {
        topic.name: {
            row.partition_index: Moving(
                replicas=tuple(row.replicas),
                adding=tuple(row.adding_replicas),
                removing=tuple(row.removing_replicas),
            )
            for row in topic.partitions
        }
        for topic in answer.topics
    }
