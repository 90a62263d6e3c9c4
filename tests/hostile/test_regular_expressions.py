"""Regular expressions that take long: others are served meanwhile, and too large expressions are refused."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.protocol.messages.transaction_admin import ListTransactionsRequest
from barnabas.protocol.messages.transactions import InitProducerIdRequest
from support.hostile.victim import SERVED_WITHIN_S, Victim
from support.scale import scaled
from support.wire.client import WireClient, key_of
from support.wire.requests import TIMEOUT_MS, new_topic

HEARTBEAT_VERSION = 1
# Each state of this one is a set of thousands of positions: matching it takes milliseconds for each name.
# Requests that are under way have some time to end.
STOPPED_WITHIN_S = 10.0
SLOW = "(.{0,100}){0,10}x"


def coordinators(victim: Victim) -> None:
    with WireClient(victim.address) as client:
        for kind in (0, 1):
            while client.ask(FindCoordinatorRequest(key="g", key_type=kind), 3).error_code:
                pass


def make_topics(victim: Victim, names: list[str]) -> None:
    with WireClient(victim.address, timeout_s=120) as client:
        for at in range(0, len(names), 1_000):
            topics = [new_topic(name, 1, {}) for name in names[at : at + 1_000]]
            answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS), 5)
            assert {topic.error_code for topic in answer.topics} == {0}


def heartbeat(group: str, member: str, regex: str | None, *, epoch: int = 0) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )


def topics_of(answer: ConsumerGroupHeartbeatResponse) -> int:
    assert answer.error_code == 0, (answer.error_code, answer.error_message)
    assert answer.assignment is not None
    return len(answer.assignment.topic_partitions)


def test_an_expression_of_many_groups_delays_no_other_client(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        coordinators(victim)
        make_topics(victim, [f"{number:03}".ljust(240, "a") for number in range(50)])
        with victim.bystander() as bystander, WireClient(victim.address, timeout_s=60) as client:
            for count in (500, 1_000, 2_000):
                answer = client.ask(heartbeat(f"g-{count}", "m", "(.*)" * count), HEARTBEAT_VERSION)
                # Those of the coordinators are topics as well, and so is the bystander's.
                assert topics_of(answer) >= 50
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


TOO_LARGE = {
    "nested repetitions": "((a{1,100}){1,100})",
    "classes": r"\pL" * 10_000,
    "classes repeated": r"(\pL{30}\pN{30})+",
    "repetitions in a row": "(?:a{1000}|b)" * 2_000,
}


def test_expressions_that_are_too_large_are_refused(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        coordinators(victim)
        with victim.bystander() as bystander, ExitStack() as stack:
            clients = [stack.enter_context(WireClient(victim.address, timeout_s=60)) for _ in range(20)]
            for what, regex in TOO_LARGE.items():
                for number, client in enumerate(clients):
                    client.send(heartbeat("g", f"m-{number}", regex), HEARTBEAT_VERSION)
                for client in clients:
                    _, answer = client.receive(key_of(heartbeat("g", "m", None)), HEARTBEAT_VERSION)
                    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION, what
                    assert len(answer.error_message) < 500
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


@pytest.mark.scaled
def test_many_members_with_slow_expressions_leave_time_for_others(tmp_path: Path) -> None:
    members = scaled("BARNABAS_MEMBERS", 10, 200)
    topics = [f"{number:05}".ljust(240, "a") for number in range(scaled("BARNABAS_TOPICS", 50, 1_000))]
    with Victim(tmp_path) as victim:
        coordinators(victim)
        make_topics(victim, topics)
        with victim.bystander() as bystander, ExitStack() as stack:
            clients = [stack.enter_context(WireClient(victim.address, timeout_s=600)) for _ in range(members)]
            for number, client in enumerate(clients):
                client.send(heartbeat("g", f"m-{number}", f"{SLOW}{number}|0.*"), HEARTBEAT_VERSION)
            for client in clients:
                _, answer = client.receive(key_of(heartbeat("g", "m", None)), HEARTBEAT_VERSION)
                assert answer.error_code == 0
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_an_expression_that_changes_per_heartbeat_delays_no_other_client(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim:
        coordinators(victim)
        make_topics(victim, [f"{number:03}".ljust(240, "a") for number in range(60)])
        with victim.bystander() as bystander, WireClient(victim.address, timeout_s=60) as client:
            epoch = 0
            for number in range(4):
                slow = SLOW if number % 2 else "(.*)" * 400
                asked = heartbeat("g", "m", f"{slow}{number}|0.*", epoch=epoch)
                answer = client.ask(asked, HEARTBEAT_VERSION)
                assert answer.error_code == 0
                epoch = answer.member_epoch
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


@pytest.mark.scaled
def test_members_have_all_of_very_many_topics_with_their_first_heartbeat(tmp_path: Path) -> None:
    """Ordinary expressions, many of them at the same time."""
    count = scaled("BARNABAS_TOPICS", 600, 20_000)
    groups = scaled("BARNABAS_GROUPS", 10, 100)
    listed = range(100, 500)
    names = "|".join(f"(orders-{number})" for number in listed)
    matching = sum(number in listed or number % 10 == 9 for number in range(count))
    with Victim(tmp_path) as victim:
        coordinators(victim)
        make_topics(victim, [f"orders-{number}" for number in range(count)])
        with victim.bystander() as bystander, ExitStack() as stack:
            clients = [stack.enter_context(WireClient(victim.address, timeout_s=120)) for _ in range(groups)]
            for number, client in enumerate(clients):
                regex = f"orders-.*9|{names}|(payments-{number})"
                client.send(heartbeat(f"g-{number}", "m", regex), HEARTBEAT_VERSION)
            for client in clients:
                _, answer = client.receive(key_of(heartbeat("g", "m", None)), HEARTBEAT_VERSION)
                assert topics_of(answer) == matching
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_a_pattern_for_transactional_ids_delays_no_other_client(tmp_path: Path) -> None:
    ids = [f"{number:03}".ljust(240, "a") for number in range(50)]
    with Victim(tmp_path) as victim:
        coordinators(victim)
        with WireClient(victim.address) as client:
            for one in ids:
                asked = InitProducerIdRequest(transactional_id=one, transaction_timeout_ms=60_000)
                assert client.ask(asked, 4).error_code == 0
        with victim.bystander() as bystander, WireClient(victim.address, timeout_s=60) as client:
            for pattern in ("(.*)" * 1_000, f"{SLOW}?.*"):
                answer = client.ask(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
                assert {one.transactional_id for one in answer.transaction_states} == set(ids)
            for pattern in TOO_LARGE.values():
                answer = client.ask(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
                assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert bystander.error is None
        assert bystander.slowest_s < SERVED_WITHIN_S
        victim.check()


def test_a_broker_stops_while_it_matches_slow_expressions(tmp_path: Path) -> None:
    with Victim(tmp_path) as victim, ExitStack() as stack:
        coordinators(victim)
        make_topics(victim, [f"{number:03}".ljust(240, "a") for number in range(200)])
        clients = [stack.enter_context(WireClient(victim.address)) for _ in range(60)]
        before_s = victim.cpu_s
        for number, client in enumerate(clients):
            client.send(heartbeat("g", f"m-{number}", f"{SLOW}{number}|.*"), HEARTBEAT_VERSION)
        victim.eventually(lambda: victim.cpu_s > before_s + 0.3, "it matches")

        started = time.monotonic()
        victim.check()
        assert time.monotonic() - started < STOPPED_WITHIN_S
