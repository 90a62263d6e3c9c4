"""The server-side assignors and the hashes of metadata against what Kafka 4.3.0's own answered.

tests/differential/kafka_assignors made the answers, and its README says what they hold.
"""

import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid, parse_uuid
from barnabas.coordinators.group.assignors import Assignment, MemberSpec, TopicSpec, assign
from barnabas.coordinators.group.assignors.metadata_hash import group_hash, topic_hash
from barnabas.coordinators.group.assignors.xxh3 import xxh3_64
from barnabas.metadata.image import BrokerImage, PartitionImage, TopicImage
from barnabas.protocol.stored.cluster_nodes import RegisterBrokerRecord

ANSWERS = Path(__file__).parent.parent / "fixtures" / "kafka-4.3" / "assignors.jsonl.xz"


def read_answers() -> dict[str, list[Any]]:
    answers: dict[str, list[Any]] = defaultdict(list)
    with lzma.open(ANSWERS, "rt", encoding="utf-8") as lines:
        for line in lines:
            answer = json.loads(line)
            answers[answer["kind"]].append(answer)
    return answers


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Any]]:
    return read_answers()


def assignment(described: list[Any], topics: list[Uuid]) -> Assignment:
    return {topics[topic]: frozenset(partitions) for topic, partitions in described}


def assign_cases(
    answers: dict[str, list[Any]], *, assignor: str, homogeneous: bool
) -> Iterator[tuple[dict[str, MemberSpec], dict[Uuid, TopicSpec], dict[str, Assignment]]]:
    for answer in answers["assign"]:
        if (answer["assignor"], answer["homogeneous"]) != (assignor, homogeneous):
            continue
        ids = [parse_uuid(text) for text, _ in answer["topics"]]
        topics = {parse_uuid(text): TopicSpec(partitions, ()) for text, partitions in answer["topics"]}
        members = {
            member_id: MemberSpec(
                instance_id, None, frozenset(ids[one] for one in subscribed), assignment(owned, ids)
            )
            for member_id, instance_id, subscribed, owned in answer["members"]
        }
        expected = {
            member_id: assignment(described, ids)
            for member_id, described in zip(members, answer["assigned"], strict=True)
        }
        yield members, topics, expected


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_every_member_gets_the_partitions_that_kafka_assigns(
    answers: dict[str, list[Any]], assignor: str, homogeneous: bool
) -> None:
    cases = list(assign_cases(answers, assignor=assignor, homogeneous=homogeneous))

    assert len(cases) > 100
    for number, (members, topics, expected) in enumerate(cases):
        assert assign(assignor, members, topics, homogeneous=homogeneous) == expected, f"case {number}"


def test_the_answers_make_members_lose_partitions_and_keep_them(answers: dict[str, list[Any]]) -> None:
    lost = kept = 0
    for homogeneous in (True, False):
        for members, _, expected in assign_cases(answers, assignor="uniform", homogeneous=homogeneous):
            for member_id, member in members.items():
                wanted = {topic: member.owned[topic] for topic in member.owned.keys() & member.topics}
                lost += any(
                    not of <= expected[member_id].get(topic, frozenset()) for topic, of in wanted.items()
                )
                kept += bool(member.owned) and expected[member_id] == member.owned

    assert lost > 300
    assert kept > 300


def test_bytes_have_the_hash_that_kafkas_library_gives_them(answers: dict[str, list[Any]]) -> None:
    assert len(answers["plain"]) > 300
    for answer in answers["plain"]:
        length = answer["length"]
        data = bytes((31 * at * at + 7 * at + length) % 256 for at in range(length))

        assert xxh3_64(data) == answer["hash"] % 2**64, f"{length} bytes"


def test_a_topic_has_the_hash_that_kafka_gives_it(answers: dict[str, list[Any]]) -> None:
    assert len(answers["topic"]) > 50
    for answer in answers["topic"]:
        topic = TopicImage(
            answer["name"],
            parse_uuid(answer["id"]),
            tuple(partition(tuple(replicas)) for replicas in answer["partitions"]),
        )
        brokers = {int(number): broker(int(number), rack) for number, rack in answer["brokers"].items()}

        assert topic_hash(topic, brokers) == answer["hash"]


def test_a_group_has_the_hash_that_kafka_gives_it(answers: dict[str, list[Any]]) -> None:
    assert len(answers["group"]) > 20
    for answer in answers["group"]:
        assert group_hash(answer["topics"]) == answer["hash"]


def partition(replicas: tuple[int, ...]) -> PartitionImage:
    return PartitionImage(
        replicas=replicas,
        directories=(ZERO_UUID,) * len(replicas),
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def broker(number: int, rack: str | None) -> BrokerImage:
    registration = RegisterBrokerRecord(broker_id=number, rack=rack)
    return BrokerImage(
        id=number, epoch=1, fenced=False, in_controlled_shutdown=False, registration=registration
    )
