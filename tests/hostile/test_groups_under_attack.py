"""Large, numerous or rebalancing groups: others are served meanwhile, and the memory is freed."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinators.group.classic.joins import METADATA_BYTES_MAX
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.topics import CreateTopicsRequest
from support.hostile.victim import SERVED_WITHIN_S, Bystander, Victim
from support.scale import scaled
from support.wire.client import WireClient, key_of
from support.wire.requests import TIMEOUT_MS, new_topic

HEARTBEAT_VERSION = 1
JOIN_VERSION = 3
# What one connection may have under way.
PIPELINED = 100
# Groups wait a second for their first members, and not three.
SOON = {"group.initial.rebalance.delay.ms": 1_000}


def coordinators(victim: Victim) -> None:
    with WireClient(victim.address) as client:
        while client.ask(FindCoordinatorRequest(key="g", key_type=0), 3).error_code:
            pass


def make_topics(victim: Victim, names: list[str], partitions: int = 1) -> None:
    with WireClient(victim.address, timeout_s=120) as client:
        for at in range(0, len(names), 1_000):
            topics = [new_topic(name, partitions, {}) for name in names[at : at + 1_000]]
            answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 5)
            assert {topic.error_code for topic in answer.topics} == {0}


def joining(group: str, member: str, topics: list[str]) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )


def ask_all(victim: Victim, requests: Iterable[Any], version: int) -> list[Any]:
    """Send each request on its own connection, all at the same time."""
    with ExitStack() as stack:
        clients = []
        for body in requests:
            client = stack.enter_context(WireClient(victim.address, timeout_s=300))
            clients.append((client, body))
        for client, body in clients:
            client.send(body, version)
        return [client.receive(key_of(body), version)[1] for client, body in clients]


def check(victim: Victim, bystander: Bystander) -> None:
    assert bystander.error is None
    assert bystander.slowest_s < SERVED_WITHIN_S
    victim.check()


@pytest.mark.scaled
def test_many_groups_with_many_topics_delay_no_other_client(tmp_path: Path) -> None:
    names = [f"orders-{number}" for number in range(scaled("BARNABAS_TOPICS", 1_000, 3_000))]
    groups = scaled("BARNABAS_GROUPS", 60, 100)
    with Victim(tmp_path) as victim:
        coordinators(victim)
        make_topics(victim, names)
        with victim.bystander() as bystander:
            answers = ask_all(
                victim, (joining(f"g-{number}", "m", names) for number in range(groups)), HEARTBEAT_VERSION
            )
            assert {answer.error_code for answer in answers} == {0}
            assert {len(answer.assignment.topic_partitions) for answer in answers} == {len(names)}
        check(victim, bystander)


@pytest.mark.scaled
def test_members_with_different_subscriptions_delay_no_other_client(tmp_path: Path) -> None:
    names = [f"orders-{number}" for number in range(scaled("BARNABAS_TOPICS", 600, 3_000))]
    members = scaled("BARNABAS_MEMBERS", 60, 300)
    with Victim(tmp_path, settings={"group.consumer.assignment.interval.ms": 0}) as victim:
        coordinators(victim)
        make_topics(victim, names)
        with victim.bystander() as bystander:
            answers = ask_all(
                victim,
                (joining("g", f"m-{number}", names[number:]) for number in range(members)),
                HEARTBEAT_VERSION,
            )
            assert {answer.error_code for answer in answers} == {0}
            with WireClient(victim.address) as client:
                victim.eventually(
                    lambda: has_partitions(client, answers[0].member_epoch), "the first member has partitions"
                )
        check(victim, bystander)


def has_partitions(client: WireClient, epoch: int) -> bool:
    """Whether the first member of the group has an assignment."""
    body = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m-0", member_epoch=epoch)
    while True:
        answer = client.ask(body, HEARTBEAT_VERSION)
        assert answer.error_code == 0
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return True
        if answer.member_epoch == body.member_epoch:
            return False
        body.member_epoch = answer.member_epoch


@pytest.mark.scaled
def test_answering_many_members_at_once_delays_no_other_client(tmp_path: Path) -> None:
    members = scaled("BARNABAS_MEMBERS", 2_000, 25_000)
    body = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0" * 50)],
    )
    with Victim(tmp_path, settings=SOON) as victim:
        coordinators(victim)
        with victim.bystander() as bystander, ExitStack() as stack:
            clients = [
                stack.enter_context(WireClient(victim.address, timeout_s=120))
                for _ in range(members // PIPELINED)
            ]
            pacer = stack.enter_context(WireClient(victim.address))
            for client in clients:
                for _ in range(PIPELINED):
                    client.send(body, JOIN_VERSION)
                # Only what follows from the joins is to come at once.
                pacer.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
            answers = [
                client.receive(key_of(body), JOIN_VERSION)[1] for client in clients for _ in range(PIPELINED)
            ]
            assert {answer.error_code for answer in answers} == {0}
            assert max(len(answer.members) for answer in answers) == members
        check(victim, bystander)


def test_members_with_much_metadata_are_refused_when_they_have_32_mib(tmp_path: Path) -> None:
    body = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m" * 2_000_000)],
    )
    with Victim(tmp_path, settings=SOON) as victim:
        coordinators(victim)
        with victim.bystander() as bystander, ExitStack() as stack:
            clients = [stack.enter_context(WireClient(victim.address)) for _ in range(60)]
            for client in clients:
                client.send(body, JOIN_VERSION)
            codes = [client.receive(key_of(body), JOIN_VERSION)[1].error_code for client in clients]
            fit = METADATA_BYTES_MAX // 2_000_000
            assert codes.count(0) == fit
            assert codes.count(ErrorCode.GROUP_MAX_SIZE_REACHED) == len(clients) - fit
            # Others may still join.
            body.protocols[0].metadata = b"m" * 50
            body.group_id = "other"
            assert clients[-1].ask(body, JOIN_VERSION).error_code == 0
        check(victim, bystander)
