"""Leader elections on request: ElectLeaders."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.call import Call, Outcome, Spoken, check, judged
from barnabas.client.admin.leaders import by_topic
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.replicas import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

# The first replica, or any live replica although records may be lost.
ElectionType: TypeAlias = Literal["preferred", "unclean"]

_PREFERRED, _UNCLEAN = 0, 1
_TYPES_FROM: Final = 1


async def elect(
    call: Call, election: ElectionType, tps: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Outcome[bool]]:
    """Return True where a leader was elected, False where no election was needed."""
    wanted = None
    if tps is not None:
        wanted = [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic(tps)]

    def make(spoken: Spoken) -> object:
        if election == "unclean":
            spoken.needs(_TYPES_FROM, "unclean elections")
        return ElectLeadersRequest(
            election_type=_UNCLEAN if election == "unclean" else _PREFERRED,
            topic_partitions=wanted,
            timeout_ms=call.request_timeout_ms,
        )

    async def attempt() -> dict[TopicPartition, Outcome[bool]]:
        answer: ElectLeadersResponse = await call.ask(ApiKey.ELECT_LEADERS, make)
        check(answer.error_code, about="the election")
        found: dict[TopicPartition, Outcome[bool]] = {}
        for topic in answer.replica_election_results:
            for entry in topic.partition_result:
                tp = TopicPartition(topic.topic, entry.partition_id)
                if entry.error_code == ErrorCode.ELECTION_NOT_NEEDED:
                    found[tp] = False
                else:
                    found[tp] = judged(entry.error_code, True, about=str(tp), message=entry.error_message)
        return found

    return await call.single("ELECT_LEADERS", attempt)
