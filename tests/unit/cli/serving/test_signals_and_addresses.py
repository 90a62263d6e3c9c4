"""Signals of a running node, and errors of addresses that cannot be bound."""

import signal
import socket

import pytest

from barnabas.cli.serving import addresses
from barnabas.cli.serving.addresses import CannotListen, check_address, own_name
from barnabas.cli.serving.signals import ONE_PRESS_S, StopSignals


class Recorded:
    """Records the actions of StopSignals."""

    def __init__(self) -> None:
        self.now = 100.0
        self.done: list[str] = []
        self.signals = StopSignals(
            lambda name: self.done.append(f"stop {name}"), self.done.append, lambda: self.now
        )


def test_the_first_signal_asks_for_a_clean_stop() -> None:
    process = Recorded()

    process.signals.receive(signal.SIGTERM)

    assert process.done == ["stop SIGTERM"]


def test_a_second_press_of_ctrl_c_ends_the_process_at_once() -> None:
    process = Recorded()
    process.signals.receive(signal.SIGINT)

    process.now += ONE_PRESS_S
    process.signals.receive(signal.SIGINT)

    assert process.done == ["stop SIGINT", "stopped at once signal=SIGINT"]


def test_a_forwarded_duplicate_of_ctrl_c_is_ignored() -> None:
    process = Recorded()
    process.signals.receive(signal.SIGINT)

    process.now += ONE_PRESS_S / 2
    process.signals.receive(signal.SIGINT)

    assert process.done == ["stop SIGINT"]


def test_a_port_in_use_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}: the address is in use"):
            check_address("127.0.0.1", port)

    check_address("127.0.0.1", port)


def test_an_address_of_another_machine_is_reported() -> None:
    with pytest.raises(CannotListen, match=r"192\.0\.2\.1:9092: this machine has no such address"):
        check_address("192.0.2.1", 9092)


def test_an_unknown_host_name_is_reported() -> None:
    with pytest.raises(CannotListen, match=r"cannot listen on no-such-host\.invalid:9092: "):
        check_address("no-such-host.invalid", 9092)


def test_an_empty_host_means_all_addresses() -> None:
    check_address("", 0)


def test_own_name_can_be_resolved() -> None:
    assert socket.getaddrinfo(own_name(), None)


def test_own_name_falls_back_to_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses.socket, "getfqdn", lambda: "no-such-host.invalid")
    monkeypatch.setattr(addresses.socket, "gethostname", lambda: "no-such-host.invalid")

    assert own_name() != "no-such-host.invalid"
    assert socket.getaddrinfo(own_name(), None)
