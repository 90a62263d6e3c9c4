"""Whether to poll after sending responses, decided by the success of earlier polls."""

import pytest

from barnabas.server.network.outlet import (
    BUSY_POLL_NS,
    CREDIT_MAX,
    PUSHED_ASIDE_NS,
    REST_MAX,
    REST_MIN,
    BusyPoll,
    busy_poll_ns,
)

pytestmark = pytest.mark.kernel

LOOK_NS = 2_000


class Broker:
    """Polls after every turn, and counts the time it was awake."""

    def __init__(self, awake_ns: int = BUSY_POLL_NS) -> None:
        self.now_ns = 10**9
        self.used_ns = 10**6
        self.awake_ns = 0
        self.busy_poll = BusyPoll(lambda: self.now_ns, lambda: self.used_ns, awake_ns)

    def turn(self, asked_after_ns: int, look_ns: int = LOOK_NS, *, is_pushed: bool = False) -> bool:
        """Answers go out, and the next request comes so long after that. Whether we were awake for it."""
        begun_ns = self.now_ns
        is_awake = self.busy_poll.start()
        while is_awake:
            self.now_ns += look_ns
            self.used_ns += LOOK_NS if is_pushed else look_ns
            if self.now_ns - begun_ns >= asked_after_ns:
                self.busy_poll.succeeded()
                break
            is_awake = self.busy_poll.should_continue()
        self.awake_ns += self.now_ns - begun_ns
        self.now_ns = max(self.now_ns, begun_ns + asked_after_ns)
        return is_awake

    def share_awake(self, asked_after_ns: int, turns: int = 10_000) -> float:
        """How much of the time it is awake if all requests come so late."""
        begun_ns, awake_ns = self.now_ns, self.awake_ns
        for _ in range(turns):
            self.turn(asked_after_ns)
        return (self.awake_ns - awake_ns) / (self.now_ns - begun_ns)


def test_a_client_that_asks_again_at_once_is_caught_by_polling() -> None:
    broker = Broker()

    assert all(broker.turn(BUSY_POLL_NS // 2) for _ in range(1_000))


def test_polling_continues_if_one_poll_in_three_succeeds() -> None:
    broker = Broker()

    found = [
        broker.turn(BUSY_POLL_NS // 2 if number % 3 == 0 else 5 * BUSY_POLL_NS) for number in range(3_000)
    ]

    assert found.count(True) == 1_000


def test_polling_stops_if_only_one_poll_in_ten_succeeds() -> None:
    broker = Broker()

    found = [
        broker.turn(BUSY_POLL_NS // 2 if number % 10 == 0 else 5 * BUSY_POLL_NS) for number in range(3_000)
    ]

    assert found.count(True) < 100


@pytest.mark.parametrize("asked_after_ns", [BUSY_POLL_NS + 2 * LOOK_NS, 2 * BUSY_POLL_NS, 10 * BUSY_POLL_NS])
def test_unsuccessful_polling_uses_little_cpu(asked_after_ns: int) -> None:
    broker = Broker()
    broker.share_awake(asked_after_ns, turns=10 * REST_MAX)

    assert 0 < broker.share_awake(asked_after_ns) < 1.5 / REST_MAX


def test_polling_resumes_when_requests_come_soon_again() -> None:
    broker = Broker()
    broker.share_awake(10 * BUSY_POLL_NS)

    found = [broker.turn(BUSY_POLL_NS // 2) for _ in range(2 * REST_MAX)]

    assert True in found[: REST_MAX + 1]
    assert all(found[REST_MAX + 1 :])


def test_a_few_failed_polls_do_not_pause_polling() -> None:
    broker = Broker()
    broker.turn(BUSY_POLL_NS // 2)
    for _ in range(CREDIT_MAX):
        assert not broker.turn(10 * BUSY_POLL_NS)

    assert broker.turn(BUSY_POLL_NS // 2)


def test_one_failed_poll_too_many_pauses_polling() -> None:
    broker = Broker()
    for _ in range(CREDIT_MAX + 1):
        assert not broker.turn(10 * BUSY_POLL_NS)

    found = [broker.turn(BUSY_POLL_NS // 2) for _ in range(REST_MIN + 10)]

    assert found == [False] * REST_MIN + [True] * 10


def test_each_further_failure_doubles_the_pause() -> None:
    broker = Broker()
    tried = []
    for number in range(3_000):
        before_ns = broker.awake_ns
        broker.turn(10 * BUSY_POLL_NS)
        if broker.awake_ns > before_ns:
            tried.append(number)

    rests = [
        later - earlier - 1
        for earlier, later in zip(tried[CREDIT_MAX:], tried[CREDIT_MAX + 1 :], strict=False)
    ]
    assert rests[:4] == [8, 16, 32, 64]
    assert set(rests[4:]) == {REST_MAX}


def test_after_any_number_of_failures_one_success_earns_two_more_polls() -> None:
    broker = Broker()
    broker.share_awake(10 * BUSY_POLL_NS)
    while not broker.turn(BUSY_POLL_NS // 2):
        pass

    assert [broker.turn(ns) for ns in (10 * BUSY_POLL_NS, 10 * BUSY_POLL_NS, LOOK_NS)] == [False, False, True]


def test_after_any_number_of_successes_failures_soon_pause_polling() -> None:
    broker = Broker()
    broker.share_awake(10 * BUSY_POLL_NS)
    broker.share_awake(BUSY_POLL_NS // 2)
    for _ in range(CREDIT_MAX + 1):
        broker.turn(10 * BUSY_POLL_NS)

    found = [broker.turn(BUSY_POLL_NS // 2) for _ in range(REST_MIN + 10)]

    assert found == [False] * REST_MIN + [True] * 10


def test_polling_pauses_at_once_if_others_need_the_cpu() -> None:
    broker = Broker()
    for _ in range(100):
        broker.turn(BUSY_POLL_NS // 2)
    assert not broker.turn(10 * PUSHED_ASIDE_NS, look_ns=PUSHED_ASIDE_NS + LOOK_NS + 1, is_pushed=True)

    found = [broker.turn(BUSY_POLL_NS // 2) for _ in range(REST_MAX + 10)]

    assert found == [False] * REST_MAX + [True] * 10


def test_own_work_between_two_polls_does_not_pause_polling() -> None:
    broker = Broker()
    for _ in range(100):
        broker.turn(BUSY_POLL_NS // 2)
    assert not broker.turn(10 * PUSHED_ASIDE_NS, look_ns=PUSHED_ASIDE_NS + LOOK_NS + 1)

    assert all(broker.turn(BUSY_POLL_NS // 2) for _ in range(100))


def test_a_pause_for_others_does_not_lengthen_later_pauses() -> None:
    broker = Broker()
    broker.turn(10 * PUSHED_ASIDE_NS, look_ns=2 * PUSHED_ASIDE_NS, is_pushed=True)
    for _ in range(REST_MAX):
        broker.turn(BUSY_POLL_NS // 2)
    # Now in vain, until it rests.
    for _ in range(CREDIT_MAX + 1):
        assert not broker.turn(10 * BUSY_POLL_NS)

    assert [broker.turn(BUSY_POLL_NS // 2) for _ in range(REST_MIN + 1)] == [False] * REST_MIN + [True]


def test_a_poll_time_of_zero_disables_polling() -> None:
    broker = Broker(awake_ns=0)

    assert not any(broker.turn(LOOK_NS) for _ in range(1_000))
    assert broker.awake_ns == 0


@pytest.mark.parametrize(
    ("processors", "awake_ns"), [(0.5, 0), (1, 0), (1.99, 0), (2, BUSY_POLL_NS), (64, BUSY_POLL_NS)]
)
def test_polling_needs_a_second_cpu(processors: float, awake_ns: int) -> None:
    assert busy_poll_ns(processors) == awake_ns
