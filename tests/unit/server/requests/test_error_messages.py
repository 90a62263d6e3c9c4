"""An error message that quotes a very long name still fits into its response."""

from barnabas.protocol.messages.replicas import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from barnabas.protocol.messages.topics import CreatableTopicResult, CreateTopicsResponse
from barnabas.protocol.schema.codec import encode
from barnabas.protocol.wire import STRING_BYTES_MAX
from barnabas.server.requests.error_messages import MESSAGE_CHARS_MAX, cut_messages

# The message quotes a name that is itself as long as a string may be.
LONG = f"topic {'é' * (STRING_BYTES_MAX // 2)} does not exist"


def test_a_message_that_is_too_long_is_cut() -> None:
    result = CreatableTopicResult(name="a", error_message=LONG)
    answer = CreateTopicsResponse(topics=[CreatableTopicResult(name="b", error_message="short"), result])

    assert cut_messages(answer)

    assert result.error_message == LONG[:MESSAGE_CHARS_MAX] + "..."
    assert answer.topics[0].error_message == "short"
    encode(answer, 7)


def test_a_message_in_an_inner_list_is_cut() -> None:
    partition = PartitionResult(partition_id=0, error_message=LONG)
    answer = ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="a", partition_result=[partition])]
    )

    assert cut_messages(answer)

    encode(answer, 2)


def test_messages_that_fit_are_unchanged() -> None:
    longest = "x" * STRING_BYTES_MAX
    answer = CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_message=longest)])

    assert not cut_messages(answer)

    assert answer.topics[0].error_message == longest
    assert not cut_messages(CreateTopicsResponse(topics=[CreatableTopicResult(name="a")]))
