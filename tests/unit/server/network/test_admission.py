"""Admission: connection rates throttled as in Kafka 4.3, limits of hosts, listeners and brokers, the log."""

import pytest

from barnabas.server.network.admission import (
    REFUSALS_LOGGED_MS,
    Admission,
    Admitted,
    ConnectionLimits,
    CreationRate,
    DescriptorShare,
)


def limits(**given: object) -> ConnectionLimits:
    chosen = {"connections_max": 100, "per_host_max": 100, "per_host_overrides": {}, "idle_ms": -1, **given}
    return ConnectionLimits(**chosen)  # type: ignore[arg-type]


def accepted_at(count: int, per_second_max: int) -> list[float]:
    """The times in seconds at which clients that connect one after the other are accepted."""
    rate, now_ms, times = CreationRate(), 1_000, []
    for _ in range(count):
        now_ms += rate.throttle_ms(now_ms, per_second_max)
        times.append((now_ms - 1_000) / 1000)
    return times


def test_throttle_times_equal_kafkas() -> None:
    # Seen with Kafka 4.3.0 and max.connection.creation.rate=4. Its first one came a second before the others.
    seen = [*[0.0] * 40, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]

    assert accepted_at(len(seen), 4) == pytest.approx(seen, abs=0.1)


def test_in_the_long_run_the_rate_is_the_limit() -> None:
    times = accepted_at(1_000, 10)

    assert 1_000 / times[-1] == pytest.approx(10, rel=0.15)


def test_a_rate_of_zero_accepts_one_connection_per_second() -> None:
    assert accepted_at(3, 0) == [1.0, 2.0, 3.0]


def test_a_quiet_period_compensates_a_busy_one() -> None:
    rate = CreationRate()
    for _ in range(100):
        rate.throttle_ms(0, 10)
    assert rate.throttle_ms(1, 10) > 0

    assert rate.throttle_ms(12_000, 10) == 0


def test_a_host_cannot_exceed_its_connection_limit() -> None:
    admission = Admission(limits(per_host_max=2, per_host_overrides={"b": 1}))

    entered = [admission.enter(host) for host in ("a", "a", "a", "b", "b", "c")]

    assert [why is None for why in entered] == [True, True, False, True, False, True]
    admission.leave("a")
    assert admission.enter("a") is None


def test_descriptors_are_shared_by_all_listeners() -> None:
    share = DescriptorShare(2)
    clients = Admission(limits(), Admitted(share))
    controllers = Admission(limits(), Admitted(share))

    assert clients.enter("a") is None
    assert controllers.enter("a") is None
    assert clients.enter("b") == "all file descriptors for connections are in use"
    controllers.leave("a")
    assert clients.enter("b") is None


def test_a_listener_has_its_own_limit() -> None:
    admitted = Admitted()
    one = Admission(limits(listener_max=1), admitted)
    other = Admission(limits(), admitted)

    one.enter("a")

    assert not one.has_room
    assert other.has_room


def test_brokers_can_connect_however_many_clients_there_are() -> None:
    admitted = Admitted()
    clients = Admission(limits(connections_max=2), admitted)
    brokers = Admission(limits(connections_max=2), admitted, is_protected=True)
    clients.enter("a")
    clients.enter("a")

    assert not clients.has_room
    assert brokers.has_room
    assert clients.excess == 0
    brokers.enter("b")
    assert (clients.excess, brokers.excess) == (1, 0)


def test_many_refusals_share_one_log_line() -> None:
    admission = Admission(limits())

    counts = [admission.to_log(now_ms) for now_ms in (0, 1, 2, REFUSALS_LOGGED_MS, REFUSALS_LOGGED_MS + 1)]

    assert counts == [1, 0, 0, 3, 0]


def test_waiting_listeners_are_notified_of_room() -> None:
    admitted = Admitted()
    admission = Admission(limits(connections_max=1), admitted)
    rooms: list[bool] = []
    admitted.on_room.append(lambda: rooms.append(admission.has_room))
    admission.enter("a")

    admission.leave("a")

    assert rooms == [True]
