"""When it is worth staying awake: decided by what came of it before."""

import pytest

from barnabas.server.network.vigil import (
    AWAKE_NS,
    CREDIT_MAX,
    PUSHED_ASIDE_NS,
    REST_MAX,
    REST_MIN,
    Vigil,
    awake_ns_with,
)

pytestmark = pytest.mark.kernel

LOOK_NS = 2_000


class Broker:
    """Has a vigil after every turn, and counts the time it was awake."""

    def __init__(self, awake_ns: int = AWAKE_NS) -> None:
        self.now_ns = 10**9
        self.used_ns = 10**6
        self.awake_ns = 0
        self.vigil = Vigil(lambda: self.now_ns, lambda: self.used_ns, awake_ns)

    def turn(self, asked_after_ns: int, look_ns: int = LOOK_NS, *, is_pushed: bool = False) -> bool:
        """Answers go out, and the next request comes so long after that. Whether we were awake for it."""
        begun_ns = self.now_ns
        is_awake = self.vigil.begin()
        while is_awake:
            self.now_ns += look_ns
            self.used_ns += LOOK_NS if is_pushed else look_ns
            if self.now_ns - begun_ns >= asked_after_ns:
                self.vigil.came()
                break
            is_awake = self.vigil.goes_on()
        self.awake_ns += self.now_ns - begun_ns
        self.now_ns = max(self.now_ns, begun_ns + asked_after_ns)
        return is_awake

    def share_awake(self, asked_after_ns: int, turns: int = 10_000) -> float:
        """How much of the time it is awake if all requests come so late."""
        begun_ns, awake_ns = self.now_ns, self.awake_ns
        for _ in range(turns):
            self.turn(asked_after_ns)
        return (self.awake_ns - awake_ns) / (self.now_ns - begun_ns)


def test_who_asks_again_at_once_finds_it_awake() -> None:
    broker = Broker()

    assert all(broker.turn(AWAKE_NS // 2) for _ in range(1_000))


def test_one_request_in_three_is_enough() -> None:
    broker = Broker()

    found = [broker.turn(AWAKE_NS // 2 if number % 3 == 0 else 5 * AWAKE_NS) for number in range(3_000)]

    assert found.count(True) == 1_000


def test_one_in_ten_is_not() -> None:
    broker = Broker()

    found = [broker.turn(AWAKE_NS // 2 if number % 10 == 0 else 5 * AWAKE_NS) for number in range(3_000)]

    assert found.count(True) < 100


@pytest.mark.parametrize("asked_after_ns", [AWAKE_NS + 2 * LOOK_NS, 2 * AWAKE_NS, 10 * AWAKE_NS])
def test_in_vain_it_takes_little_of_the_processor(asked_after_ns: int) -> None:
    broker = Broker()
    broker.share_awake(asked_after_ns, turns=10 * REST_MAX)

    assert 0 < broker.share_awake(asked_after_ns) < 1.5 / REST_MAX


def test_it_notices_when_it_would_be_worth_it_again() -> None:
    broker = Broker()
    broker.share_awake(10 * AWAKE_NS)

    found = [broker.turn(AWAKE_NS // 2) for _ in range(2 * REST_MAX)]

    assert True in found[: REST_MAX + 1]
    assert all(found[REST_MAX + 1 :])


def test_a_few_times_in_vain_do_not_matter() -> None:
    broker = Broker()
    broker.turn(AWAKE_NS // 2)
    for _ in range(CREDIT_MAX):
        assert not broker.turn(10 * AWAKE_NS)

    assert broker.turn(AWAKE_NS // 2)


def test_after_one_time_more_it_rests_for_a_while() -> None:
    broker = Broker()
    for _ in range(CREDIT_MAX + 1):
        assert not broker.turn(10 * AWAKE_NS)

    found = [broker.turn(AWAKE_NS // 2) for _ in range(REST_MIN + 10)]

    assert found == [False] * REST_MIN + [True] * 10


def test_it_rests_longer_each_time_that_it_was_in_vain() -> None:
    broker = Broker()
    tried = []
    for number in range(3_000):
        before_ns = broker.awake_ns
        broker.turn(10 * AWAKE_NS)
        if broker.awake_ns > before_ns:
            tried.append(number)

    rests = [
        later - earlier - 1
        for earlier, later in zip(tried[CREDIT_MAX:], tried[CREDIT_MAX + 1 :], strict=False)
    ]
    assert rests[:4] == [8, 16, 32, 64]
    assert set(rests[4:]) == {REST_MAX}


def test_however_long_it_was_in_vain_one_request_is_worth_two_more_vigils() -> None:
    broker = Broker()
    broker.share_awake(10 * AWAKE_NS)
    while not broker.turn(AWAKE_NS // 2):
        pass

    assert [broker.turn(ns) for ns in (10 * AWAKE_NS, 10 * AWAKE_NS, LOOK_NS)] == [False, False, True]


def test_however_long_it_was_worth_it_it_soon_rests_if_it_is_not() -> None:
    broker = Broker()
    broker.share_awake(10 * AWAKE_NS)
    broker.share_awake(AWAKE_NS // 2)
    for _ in range(CREDIT_MAX + 1):
        broker.turn(10 * AWAKE_NS)

    found = [broker.turn(AWAKE_NS // 2) for _ in range(REST_MIN + 10)]

    assert found == [False] * REST_MIN + [True] * 10


def test_where_others_want_the_processor_it_rests_at_once() -> None:
    broker = Broker()
    for _ in range(100):
        broker.turn(AWAKE_NS // 2)
    assert not broker.turn(10 * PUSHED_ASIDE_NS, look_ns=PUSHED_ASIDE_NS + LOOK_NS + 1, is_pushed=True)

    found = [broker.turn(AWAKE_NS // 2) for _ in range(REST_MAX + 10)]

    assert found == [False] * REST_MAX + [True] * 10


def test_work_of_its_own_between_two_looks_is_no_reason_to_rest() -> None:
    broker = Broker()
    for _ in range(100):
        broker.turn(AWAKE_NS // 2)
    assert not broker.turn(10 * PUSHED_ASIDE_NS, look_ns=PUSHED_ASIDE_NS + LOOK_NS + 1)

    assert all(broker.turn(AWAKE_NS // 2) for _ in range(100))


def test_being_pushed_aside_does_not_make_it_rest_longer_afterwards() -> None:
    broker = Broker()
    broker.turn(10 * PUSHED_ASIDE_NS, look_ns=2 * PUSHED_ASIDE_NS, is_pushed=True)
    for _ in range(REST_MAX):
        broker.turn(AWAKE_NS // 2)
    # Now in vain, until it rests.
    for _ in range(CREDIT_MAX + 1):
        assert not broker.turn(10 * AWAKE_NS)

    assert [broker.turn(AWAKE_NS // 2) for _ in range(REST_MIN + 1)] == [False] * REST_MIN + [True]


def test_with_no_time_at_all_it_always_sleeps() -> None:
    broker = Broker(awake_ns=0)

    assert not any(broker.turn(LOOK_NS) for _ in range(1_000))
    assert broker.awake_ns == 0


@pytest.mark.parametrize(
    ("processors", "awake_ns"), [(0.5, 0), (1, 0), (1.99, 0), (2, AWAKE_NS), (64, AWAKE_NS)]
)
def test_clients_need_a_processor_besides_ours(processors: float, awake_ns: int) -> None:
    assert awake_ns_with(processors) == awake_ns
