"""Which independent codec checks which message, so that a gap is a decision and not an accident.

python tests/differential/test_codec_coverage.py        # writes docs/reference/codec-coverage.md again
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.schema.versions import parse_versions
from support.wire.messages import MESSAGES, all_versions
from support.wire.peers import kafka_python_class, kio_class

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "codec-coverage.md"

# What neither kio nor kafka-python has: no request and no response, but what brokers keep in their own logs.
# These too are checked in every version against bytes of Kafka 4.3.0's own codec, by test_kafka_vectors.py.
NEITHER = """
AbortTransactionRecord 0
AccessControlEntryRecord 0
BeginTransactionRecord 0
BrokerRegistrationChangeRecord 0-3
ClearElrRecord 0
ClientQuotaRecord 0
ConfigRecord 0
ConsumerGroupCurrentMemberAssignmentKey 0
ConsumerGroupCurrentMemberAssignmentValue 0
ConsumerGroupMemberMetadataKey 0
ConsumerGroupMemberMetadataValue 0
ConsumerGroupMetadataKey 0
ConsumerGroupMetadataValue 0
ConsumerGroupPartitionMetadataKey 0
ConsumerGroupPartitionMetadataValue 0
ConsumerGroupRegularExpressionKey 0
ConsumerGroupRegularExpressionValue 0
ConsumerGroupTargetAssignmentMemberKey 0
ConsumerGroupTargetAssignmentMemberValue 0
ConsumerGroupTargetAssignmentMetadataKey 0
ConsumerGroupTargetAssignmentMetadataValue 0
DelegationTokenRecord 0
EndTransactionRecord 0
FeatureLevelRecord 0
FenceBrokerRecord 0
GroupMetadataKey 0
GroupMetadataValue 0-4
LegacyOffsetCommitKey 0
LegacyOffsetCommitValue 0
NoOpRecord 0
OffsetCommitKey 0
OffsetCommitValue 0-4
PartitionChangeRecord 0-2
PartitionRecord 0-2
ProducerIdsRecord 0
ProducerSnapshot 1
RegisterBrokerRecord 0-4
RegisterControllerRecord 0
RemoveAccessControlEntryRecord 0
RemoveDelegationTokenRecord 0
RemoveTopicRecord 0
RemoveUserScramCredentialRecord 0
ShareGroupCurrentMemberAssignmentKey 0
ShareGroupCurrentMemberAssignmentValue 0
ShareGroupMemberMetadataKey 0
ShareGroupMemberMetadataValue 0
ShareGroupMetadataKey 0
ShareGroupMetadataValue 0
ShareGroupStatePartitionMetadataKey 0
ShareGroupStatePartitionMetadataValue 0
ShareGroupTargetAssignmentMemberKey 0
ShareGroupTargetAssignmentMemberValue 0
ShareGroupTargetAssignmentMetadataKey 0
ShareGroupTargetAssignmentMetadataValue 0
ShareSnapshotKey 0
ShareSnapshotValue 0
ShareUpdateKey 0
ShareUpdateValue 0
StreamsGroupCurrentMemberAssignmentKey 0
StreamsGroupCurrentMemberAssignmentValue 0
StreamsGroupMemberMetadataKey 0
StreamsGroupMemberMetadataValue 0
StreamsGroupMetadataKey 0
StreamsGroupMetadataValue 0
StreamsGroupTargetAssignmentMemberKey 0
StreamsGroupTargetAssignmentMemberValue 0
StreamsGroupTargetAssignmentMetadataKey 0
StreamsGroupTargetAssignmentMetadataValue 0
StreamsGroupTopologyKey 0
StreamsGroupTopologyValue 0
TopicRecord 0
TransactionLogKey 0
TransactionLogValue 0-1
UnfenceBrokerRecord 0
UnregisterBrokerRecord 0
UserScramCredentialRecord 0
ZkMigrationStateRecord 0
"""

OPENING = """\
Barnabas declares {messages} messages, {total} counting their versions. All of them are checked against bytes
that Apache Kafka 4.3.0's own codec wrote (`tests/differential/test_kafka_vectors.py`). Random messages go
through two codecs that other people wrote as well, in both directions:
[kio](https://pypi.org/project/kio/) and [kafka-python](https://pypi.org/project/kafka-python/).
`tests/differential/test_codec_coverage.py` writes this page and fails when it is out of date.

"""

Find = Callable[[type, int], Any]

CODECS: dict[str, Find] = {"kio": kio_class, "kafka-python": kafka_python_class}


def has_neither(cls: type, version: int) -> bool:
    return kio_class(cls, version) is None and kafka_python_class(cls, version) is None


def written_out() -> Iterator[tuple[str, int]]:
    for line in NEITHER.split("\n")[1:-1]:
        name, versions = line.split()
        for version in parse_versions(versions).all():
            yield name, version


def test_messages_without_a_reference_codec_are_listed() -> None:
    missing = [(cls.__name__, version) for cls, version in all_versions() if has_neither(cls, version)]

    print(f"{len(missing)} of {len(list(all_versions()))} versions of messages are in neither codec")
    assert missing == list(written_out())


def test_every_version_of_every_request_and_response_is_in_kio() -> None:
    for key in ApiKey:
        for cls in (api(key).request, api(key).response):
            assert held(kio_class, cls) == str(api(key).versions), cls.__name__


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run python tests/differential/test_codec_coverage.py"


def held(find: Find, cls: type) -> str:
    """The versions that a codec has, as a range; all that we know of are without holes."""
    found = [version for version in schema_of(cls).versions.all() if find(cls, version) is not None]
    if not found:
        return "-"
    assert found == list(range(found[0], found[-1] + 1)), (cls.__name__, found)
    return f"{found[0]}-{found[-1]}" if len(found) > 1 else f"{found[0]}"


def page() -> str:
    return "\n".join([*opening(), *api_rows(), "", *stored_opening(), *stored_rows(), ""])


def opening() -> Iterator[str]:
    total = len(list(all_versions()))
    yield "# Which codec checks which message"
    yield ""
    yield from OPENING.format(messages=len(MESSAGES), total=total).splitlines()
    for name, find in CODECS.items():
        count = sum(find(cls, version) is not None for cls, version in all_versions())
        yield f"- {name}: {count} of {total}"
    yield f"- neither: {len(list(written_out()))}, none of them a request or a response"
    yield ""
    yield "## Requests and responses"
    yield ""
    yield "| key | API | versions | kio | kafka-python |"
    yield "| ---: | --- | --- | --- | --- |"


def api_rows() -> Iterator[str]:
    for key in ApiKey:
        spoken = api(key)
        name = spoken.request.__name__.removesuffix("Request")
        theirs = [
            f"{both(find, spoken.request, spoken.response)}" for find in (kio_class, kafka_python_class)
        ]
        yield f"| {key.value} | {name} | {spoken.versions} | {' | '.join(theirs)} |"


def both(find: Find, request: type, response: type) -> str:
    versions = {held(find, request), held(find, response)}
    return (
        versions.pop()
        if len(versions) == 1
        else f"request {held(find, request)}, response {held(find, response)}"
    )


def stored_opening() -> Iterator[str]:
    yield "## Headers, stored records and embedded formats"
    yield ""
    yield "| message | versions | kio | kafka-python |"
    yield "| --- | --- | --- | --- |"


def stored_rows() -> Iterator[str]:
    for name, cls in sorted(MESSAGES.items()):
        if schema_of(cls).kind not in ("request", "response"):
            theirs = " | ".join(held(find, cls) for find in CODECS.values())
            yield f"| {name} | {schema_of(cls).versions} | {theirs} |"


if __name__ == "__main__":
    PAGE.write_text(page())
