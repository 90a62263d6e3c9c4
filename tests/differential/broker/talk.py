"""Stories: what is asked of a broker, step by step, and what it answered.

A story is a function that takes a Talk. Each step has a name and is asked once or in every version; its
answers are kept as plain values, normalised (normal.py), and compared with those of another broker
(compare.py). Stories of one family share a broker, which is fresh when the first one starts, so they use
topics of their own.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from barnabas.base.ids import Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.messages.cluster import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.quorum import (
    DescribeQuorumPartitionData,
    DescribeQuorumRequest,
    DescribeQuorumTopicData,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from barnabas.protocol.schema.json import to_json
from differential.broker.batches import describe_batches
from differential.broker.normal import Normaliser
from support.wire.client import ConnectionClosed, WireClient, key_of

SETTLE_TIMEOUT_S = 20.0
POLL_S = 0.01
ANSWER_TIMEOUT_S = 10.0
CLOSED = "<connection closed>"
SILENT = "<no answer>"
GIVES_PRODUCER_IDS = (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN)

# The step, with its version where it is asked in several, and the answer.
Answers = dict[str, Any]
Story = Callable[["Talk"], None]


@dataclass
class Family:
    """The stories of one file, in order."""

    name: str
    # What their broker is started with, beside its defaults.
    settings: Mapping[str, object] = field(default_factory=dict)
    # What only Kafka has a setting for.
    settings_of_kafka: Mapping[str, object] = field(default_factory=dict)
    stories: dict[str, Story] = field(default_factory=dict)

    def story(self, function: Story) -> Story:
        name = function.__name__.strip("_")
        assert name not in self.stories, f"two stories are called {name}"
        self.stories[name] = function
        return function


class BrokerUnderTest(Protocol):
    """What KafkaBroker and OurBroker have in common."""

    address: str
    logs: Path

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Talk:
    """One story's conversation with a broker. A closed connection is an answer; then there is a new one."""

    def __init__(self, broker: BrokerUnderTest, normaliser: Normaliser, *, base_ms: int) -> None:
        self.address = broker.address
        # Records are written as of an hour ago, so that they differ from what the broker stamps.
        self.base_ms = base_ms
        self.answers: Answers = {}
        self._normaliser = normaliser
        self._broker = broker
        self._client = WireClient(self.address, timeout_s=ANSWER_TIMEOUT_S)
        # Why the last question had no answer.
        self._silence = CLOSED
        self._asides: list[Aside] = []

    def close(self) -> None:
        self._client.close()
        for aside in self._asides:
            aside.client.close()

    def restart(self) -> None:
        """Stop the broker cleanly and start it again on what it has stored."""
        self._client.close()
        self._broker.stop()
        self._broker.start()
        self._client = WireClient(self.address, timeout_s=ANSWER_TIMEOUT_S)

    # Steps

    def ask(self, step: str, body: object, version: int | None = None) -> Any:
        """Ask once, in the last version unless told; keep and return the answer, None if there was none."""
        key = key_of(body)
        used = api(key).last_stable if version is None else version
        answer = self.quietly(body, used)
        if key in GIVES_PRODUCER_IDS and answer and answer.error_code == 0 and answer.producer_id >= 0:
            self._normaliser.token("producer", answer.producer_id)
        self.keep(step, self._silence if answer is None else plain(answer, used))
        return answer

    def aside(self, step: str, body: object, version: int | None = None) -> "Aside":
        """Ask on another connection, for an answer that comes when others have asked something too."""
        used = api(key_of(body)).last_stable if version is None else version
        aside = Aside(self, step, body, used)
        self._asides.append(aside)
        return aside

    def each(self, step: str, make: Callable[[int], object], versions: Iterable[int] | None = None) -> None:
        """Ask in every version, or in these."""
        chosen = versions if versions is not None else self.versions(key_of(make(0)))
        for version in chosen:
            self.ask(f"{step} v{version}", make(version), version)

    def same(self, step: str, body: object, versions: Iterable[int] | None = None) -> None:
        """Ask the same in every version, or in these."""
        self.each(step, lambda _: body, versions)

    def keep(self, step: str, answer: Any) -> None:
        assert step not in self.answers, f"two steps are called {step}"
        self.answers[step] = self._normaliser.answer(answer)

    def versions(self, key: ApiKey) -> range:
        spoken = api(key)
        return range(spoken.versions.first, spoken.last_stable + 1)

    # Not kept

    def quietly(self, body: object, version: int) -> Any:
        """Ask, and keep nothing."""
        try:
            return self._client.ask(body, version)
        except (ConnectionClosed, TimeoutError) as error:
            self._silence = SILENT if isinstance(error, TimeoutError) else CLOSED
            self._client.close()
            self._client = WireClient(self.address, timeout_s=ANSWER_TIMEOUT_S)
            return None

    def tell(self, body: object, version: int) -> None:
        """Send what has no answer."""
        self._client.send(body, version)

    def until(self, body: object, version: int, is_so: Callable[[Any], bool]) -> Any:
        """Ask again until the answer is as wanted: a broker learns of changes a little later."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while True:
            answer = self.quietly(body, version)
            if answer is not None and is_so(answer):
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {SETTLE_TIMEOUT_S} s: {body}; the last answer is {answer}")
            time.sleep(POLL_S)

    def settle(self) -> None:
        """Wait until the broker has applied all that the controller has committed."""
        quorum = DescribeQuorumTopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumPartitionData(partition_index=0)]
        )
        answer = self.quietly(DescribeQuorumRequest(topics=[quorum]), 2)
        end = answer.topics[0].partitions[0].high_watermark
        asked = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
        self.until(asked, 4, lambda answer: answer.finalized_features_epoch >= end - 1)

    def create(self, name: str, partitions: int = 1, **configs: object) -> Uuid:
        """Create a topic, wait until it is led, and return its id. Underscores in settings mean dots."""
        settings = [
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        created = self.quietly(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0]
        assert created.error_code == 0, created
        self._normaliser.answer(to_json(created, 7))
        self.led(name, range(partitions))
        topic_id: Uuid = created.topic_id
        return topic_id

    def delete(self, name: str) -> None:
        """Delete a topic and wait until the broker has let go of it."""
        self.quietly(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)
        asked = ListOffsetsTopic(
            name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
        )
        self.until(
            ListOffsetsRequest(replica_id=-1, topics=[asked]),
            5,
            lambda answer: answer.topics[0].partitions[0].error_code != 0,
        )
        self.settle()

    def led(self, name: str, partitions: Iterable[int]) -> None:
        """Wait until the broker leads these partitions."""
        asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in partitions]
        self.until(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)]),
            5,
            lambda answer: all(not part.error_code for topic in answer.topics for part in topic.partitions),
        )
        self.until(
            MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False),
            9,
            lambda answer: answer.topics[0].error_code == 0,
        )


class Aside:
    """One question on a connection of its own."""

    def __init__(self, talk: Talk, step: str, body: object, version: int) -> None:
        self.client = WireClient(talk.address, timeout_s=ANSWER_TIMEOUT_S)
        self._talk = talk
        self._step = step
        self._key = key_of(body)
        self._version = version
        self.client.send(body, version)

    def come(self) -> Any:
        """Wait for the answer; keep and return it, None if there was none."""
        answer = None
        try:
            _, answer = self.client.receive(self._key, self._version)
            told = plain(answer, self._version)
        except ConnectionClosed:
            told = CLOSED
        except TimeoutError:
            told = SILENT
        self._talk.keep(self._step, told)
        self.client.close()
        return answer


def plain(answer: Any, version: int) -> Any:
    """An answer as plain values."""
    if type(answer).__name__ == "FetchResponse":
        return _plain_fetch(answer, version)
    return to_json(answer, version)


def _plain_fetch(answer: Any, version: int) -> Any:
    told = to_json(answer, version)
    for topic, plain_topic in zip(answer.responses, told["responses"], strict=True):
        for part, plain_part in zip(topic.partitions, plain_topic["partitions"], strict=True):
            if part.records is not None:
                plain_part["records"] = describe_batches(bytes(part.records))
    # In a session Kafka may list a topic twice, as its partitions happen to be cached; clients take both.
    merged: dict[str, Any] = {}
    for topic in told["responses"]:
        known = merged.setdefault(topic.get("topicId") or topic["topic"], topic)
        if known is not topic:
            known["partitions"] += topic["partitions"]
    told["responses"] = list(merged.values())
    return told
