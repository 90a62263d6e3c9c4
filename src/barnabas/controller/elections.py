"""ElectLeaders (key 43), and the periodic elections: preferred and unclean."""

from collections.abc import Iterable
from typing import Final

from barnabas.controller.decision import RECORDS_PER_REQUEST_MAX, Decision, Refused
from barnabas.controller.effective import TopicRules
from barnabas.controller.facts import ControllerSettings, Facts
from barnabas.controller.leadership import Placed, change_of, leaderless, partitions
from barnabas.controller.partition_change import Election
from barnabas.controller.refusals import refusal
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.replicas import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.protocol.stored.cluster_topics import PartitionChangeRecord

# Election types in ElectLeaders.
PREFERRED: Final = 0
UNCLEAN: Final = 1
# Maximum number of leader changes in one periodic election.
ELECTIONS_AT_ONCE_MAX: Final = 1_000

_MESSAGES: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}


def elect_leaders(image: MetadataImage, request: ElectLeadersRequest, facts: Facts) -> Decision:
    """Elect for the given partitions, or for all; then partitions that need none are omitted."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        message = f"Unknown election type {request.election_type}"
        return Decision((), refusal(request, ErrorCode.INVALID_REQUEST, message))
    every = request.topic_partitions is None
    asked: list[tuple[str, Iterable[int]]] = []
    if request.topic_partitions is None:
        asked += [(name, range(len(topic.partitions))) for name, topic in image.topics.items()]
    else:
        asked += [(one.topic, one.partitions) for one in request.topic_partitions]
    rules = TopicRules(image, facts.settings)
    records: list[PartitionChangeRecord] = []
    results = []
    for name, numbers in asked:
        answers = []
        for number in numbers:
            result = PartitionResult(partition_id=number, error_message=None)
            try:
                records.append(_elect(image, name, number, request.election_type, rules))
            except Refused as refused:
                if every and refused.code == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                result.error_code, result.error_message = refused.code, refused.message
            answers.append(result)
        results.append(ReplicaElectionResult(topic=name, partition_result=answers))
    if len(records) > RECORDS_PER_REQUEST_MAX:
        message = "Unable to perform excessively large batch operation."
        return Decision((), refusal(request, ErrorCode.POLICY_VIOLATION, message))
    return Decision(tuple(records), ElectLeadersResponse(replica_election_results=results), atomic=False)


def preferred_elections(image: MetadataImage, settings: ControllerSettings) -> list[PartitionChangeRecord]:
    """Return the leadership of partitions to their first replicas, if these can lead."""
    rules = TopicRules(image, settings)
    records: list[PartitionChangeRecord] = []
    for placed in partitions(image):
        if len(records) >= ELECTIONS_AT_ONCE_MAX:
            break
        if placed.partition.leader != placed.partition.replicas[0]:
            record = _record(image, placed, Election.PREFERRED, rules)
            if record is not None:
                records.append(record)
    return records


def unclean_elections(image: MetadataImage, settings: ControllerSettings) -> list[PartitionChangeRecord]:
    """Elect leaders for leaderless partitions of topics that allow unclean elections."""
    rules = TopicRules(image, settings)
    records: list[PartitionChangeRecord] = []
    for placed in leaderless(image):
        if len(records) >= ELECTIONS_AT_ONCE_MAX:
            break
        if rules.allows_unclean(placed.topic.name):
            record = _record(image, placed, Election.UNCLEAN, rules)
            if record is not None:
                records.append(record)
    return records


def _elect(
    image: MetadataImage, name: str, number: int, kind: int, rules: TopicRules
) -> PartitionChangeRecord:
    topic = image.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= number < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    partition = topic.partitions[number]
    is_preferred = partition.leader == partition.replicas[0]
    if is_preferred if kind == PREFERRED else partition.leader >= 0:
        raise _refused(ErrorCode.ELECTION_NOT_NEEDED)
    election = Election.PREFERRED if kind == PREFERRED else Election.UNCLEAN
    record = _record(image, Placed(topic, number), election, rules)
    if record is None and kind == PREFERRED:
        raise _refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    if record is None:
        raise _refused(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return record


def _record(
    image: MetadataImage, placed: Placed, election: Election, rules: TopicRules
) -> PartitionChangeRecord | None:
    change = change_of(image, rules, placed)
    change.election = election
    return change.record()


def _refused(code: ErrorCode) -> Refused:
    return Refused(code, _MESSAGES[code])
