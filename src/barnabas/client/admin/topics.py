"""Topics: CreateTopics, DeleteTopics, CreatePartitions, and listing with Metadata.

Any broker forwards requests for the controller. Descriptions are in topic_descriptions.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.base.values import value
from barnabas.client.admin.call import Call, NegotiatedApi, Outcome, check, name_of, outcome_of
from barnabas.client.admin.configs import ConfigEntry, entry_of_new_topic
from barnabas.client.errors import Refused
from barnabas.client.settings import setting_text
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.cluster import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

# A topic by its name, or by its id.
Topic: TypeAlias = str | Uuid

# Use the broker's num.partitions or default.replication.factor.
DEFAULT: Final = -1
_DEFAULTS_FROM: Final = 4
_IDS_FROM: Final = 6
_MAYBE_OWN_ATTEMPT: Final = "an earlier attempt of this call, whose response was lost, may have caused this"


@value(kw_only=True)
class NewTopic:
    """A topic to create. With an `assignment` (partition -> brokers) the two counts are ignored."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignment: Mapping[int, Sequence[int]] | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def leaves_numbers_open(self) -> bool:
        return not self.assignment and DEFAULT in (self.partitions, self.replication_factor)


@value(kw_only=True)
class CreatedTopic:
    """The created topic, or the validation result. None: not returned (old broker or not authorized)."""

    name: str
    topic_id: Uuid | None
    partitions: int | None
    replication_factor: int | None
    settings: Mapping[str, ConfigEntry] | None


@value(kw_only=True)
class NewPartitions:
    """The new total, and optionally the brokers of each new partition."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


@value(kw_only=True)
class TopicListing:
    """topic_id is None from older brokers."""

    name: str
    topic_id: Uuid | None
    internal: bool
    partitions: int


# Create


async def create_topics(
    call: Call, topics: Iterable[NewTopic], *, validate_only: bool
) -> dict[str, Outcome[CreatedTopic]]:
    new = list(topics)

    async def attempt(names: list[str]) -> dict[str, Outcome[CreatedTopic]]:
        def make(api: NegotiatedApi) -> object:
            chosen = [topic for topic in new if topic.name in pending]
            if any(topic.leaves_numbers_open for topic in chosen):
                api.require(_DEFAULTS_FROM, "default partition and replica counts")
            return CreateTopicsRequest(
                topics=[_creatable(topic) for topic in chosen],
                timeout_ms=call.request_timeout_ms,
                validate_only=validate_only,
            )

        pending = set(names)
        answer = await call.ask(ApiKey.CREATE_TOPICS, make)
        return {entry.name: _created(entry, is_made=not validate_only) for entry in answer.topics}

    outcomes = await call.retry_items("CREATE_TOPICS", [topic.name for topic in new], attempt)
    _note_if_lost(call, outcomes, ErrorCode.TOPIC_ALREADY_EXISTS)
    return outcomes


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignment = topic.assignment or {}
    return CreatableTopic(
        name=topic.name,
        num_partitions=DEFAULT if assignment else topic.partitions,
        replication_factor=DEFAULT if assignment else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in assignment.items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=setting_text(name, value))
            for name, value in topic.settings.items()
        ],
    )


def _created(entry: CreatableTopicResult, *, is_made: bool) -> Outcome[CreatedTopic]:
    # Without DescribeConfigs authorization only name and id are returned (KIP-525).
    is_described = entry.topic_config_error_code == ErrorCode.NONE and entry.num_partitions != DEFAULT
    made = CreatedTopic(
        name=entry.name,
        # With validate_only the broker returns a random id that is never used.
        topic_id=entry.topic_id if is_made and entry.topic_id != ZERO_UUID else None,
        partitions=entry.num_partitions if is_described else None,
        replication_factor=entry.replication_factor if is_described else None,
        settings={each.name: entry_of_new_topic(each) for each in entry.configs or ()}
        if is_described
        else None,
    )
    return outcome_of(entry.error_code, made, about=f"topic {entry.name}", message=entry.error_message)


# Delete


async def delete_topics(call: Call, topics: Iterable[Topic]) -> dict[Topic, Outcome[None]]:
    async def attempt(pending: list[Topic]) -> dict[Topic, Outcome[None]]:
        names = [topic for topic in pending if isinstance(topic, str)]
        ids = [topic for topic in pending if not isinstance(topic, str)]

        def make(api: NegotiatedApi) -> object:
            timeout_ms = call.request_timeout_ms
            if api.version < _IDS_FROM:
                if ids:
                    api.require(_IDS_FROM, "topic ids")
                return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
            states = [DeleteTopicState(name=name) for name in names]
            states += [DeleteTopicState(topic_id=topic_id) for topic_id in ids]
            return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)

        answer = await call.ask(ApiKey.DELETE_TOPICS, make)
        wanted = set(ids)
        found: dict[Topic, Outcome[None]] = {}
        for entry in answer.responses:
            key = entry.topic_id if entry.topic_id in wanted else entry.name
            about = f"topic {name_of(key)}"
            found[key] = outcome_of(entry.error_code, None, about=about, message=entry.error_message)
        return found

    outcomes = await call.retry_items("DELETE_TOPICS", topics, attempt)
    _note_if_lost(call, outcomes, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
    return outcomes


def _note_if_lost(call: Call, outcomes: Mapping[Any, Outcome[Any]], *codes: ErrorCode) -> None:
    """Add a note if an earlier attempt of this call may have caused the error."""
    for outcome in outcomes.values():
        if call.response_lost and isinstance(outcome, Refused) and outcome.code in codes:
            outcome.add_note(_MAYBE_OWN_ATTEMPT)


# Partitions


async def create_partitions(
    call: Call, wanted: Mapping[str, NewPartitions], *, validate_only: bool
) -> dict[str, Outcome[None]]:
    async def attempt(pending: list[str]) -> dict[str, Outcome[None]]:
        def make(_: NegotiatedApi) -> object:
            return CreatePartitionsRequest(
                topics=[_partitions_topic(name, wanted[name]) for name in pending],
                timeout_ms=call.request_timeout_ms,
                validate_only=validate_only,
            )

        answer = await call.ask(ApiKey.CREATE_PARTITIONS, make)
        return {
            entry.name: outcome_of(
                entry.error_code, None, about=f"topic {entry.name}", message=entry.error_message
            )
            for entry in answer.results
        }

    outcomes = await call.retry_items("CREATE_PARTITIONS", wanted, attempt)
    _note_if_lost(call, outcomes, ErrorCode.INVALID_PARTITIONS)
    return outcomes


def _partitions_topic(name: str, new: NewPartitions) -> CreatePartitionsTopic:
    assignments = new.assignments
    return CreatePartitionsTopic(
        name=name,
        count=new.total,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments],
    )


# List


async def list_topics(call: Call, *, internal: bool) -> dict[str, TopicListing]:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)

    async def attempt() -> dict[str, TopicListing]:
        answer: MetadataResponse = await call.ask(ApiKey.METADATA, lambda _: request)
        check(answer.error_code, about="the list of topics")
        found = (
            TopicListing(
                name=entry.name,
                topic_id=None if entry.topic_id == ZERO_UUID else entry.topic_id,
                internal=entry.is_internal,
                partitions=len(entry.partitions),
            )
            for entry in answer.topics
            if entry.name is not None and (internal or not entry.is_internal)
        )
        return {topic.name: topic for topic in sorted(found, key=lambda topic: topic.name)}

    return await call.retry_single("METADATA", attempt)
