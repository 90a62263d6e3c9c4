"""SO_RCVLOWAT of a client that receives a large response."""

import select
import socket
from collections.abc import Iterator

import pytest

from barnabas.client.sockets import LowWaterMark

PART = 64 * 1024
NOW_S = 1000.0
LONG_S = 0.04


class Transport:
    """The part of a transport that the LowWaterMark uses."""

    def __init__(self, receiver: socket.socket | None) -> None:
        self.receiver = receiver

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self.receiver if name == "socket" else None


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sender,
        server.accept()[0] as receiver,
    ):
        yield sender, receiver


def is_woken(receiver: socket.socket, within_s: float = 0.1) -> bool:
    return bool(select.select([receiver], [], [], within_s)[0])


def test_a_large_answer_wakes_when_a_good_part_is_there(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    LowWaterMark(Transport(receiver)).expect(4 * PART, PART, NOW_S)

    sender.sendall(bytes(PART // 2))
    assert not is_woken(receiver)
    sender.sendall(bytes(PART // 2))
    assert is_woken(receiver, within_s=30)


def test_the_last_part_wakes_when_it_is_whole(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    low_water_mark = LowWaterMark(Transport(receiver))
    low_water_mark.expect(4 * PART, PART, NOW_S)
    low_water_mark.expect(100, PART, NOW_S)

    sender.sendall(bytes(99))
    assert not is_woken(receiver)
    sender.sendall(bytes(1))
    assert is_woken(receiver, within_s=30)


def test_between_answers_every_byte_wakes(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    low_water_mark = LowWaterMark(Transport(receiver))
    low_water_mark.expect(4 * PART, PART, NOW_S)
    low_water_mark.expect(0, PART, NOW_S)

    sender.sendall(bytes(1))
    assert is_woken(receiver, within_s=30)


def test_small_answers_are_not_worth_a_call(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    LowWaterMark(Transport(receiver)).expect(PART - 1, 1, NOW_S)

    sender.sendall(bytes(1))
    assert is_woken(receiver, within_s=30)


def test_the_end_of_a_connection_is_reported_at_once(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    LowWaterMark(Transport(receiver)).expect(4 * PART, PART, NOW_S)

    sender.sendall(bytes(10))
    sender.close()
    assert is_woken(receiver, within_s=30)


@pytest.mark.parametrize(
    ("received", "apart_s", "is_given_up"),
    [
        (PART, LONG_S, True),
        # The client was late, not the broker: much data has arrived.
        (10 * PART, LONG_S, False),
        (PART, 0.01, False),
    ],
)
def test_late_wakeups_disable_the_low_water_mark(
    ends: tuple[socket.socket, socket.socket], received: int, apart_s: float, is_given_up: bool
) -> None:
    sender, receiver = ends
    low_water_mark = LowWaterMark(Transport(receiver))
    for number in range(4):
        low_water_mark.expect(100 * PART, received, NOW_S + number * apart_s)

    sender.sendall(bytes(1))

    assert is_woken(receiver) == is_given_up


def test_time_between_responses_does_not_count_as_late(ends: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = ends
    low_water_mark = LowWaterMark(Transport(receiver))
    for number in range(8):
        # A response of two parts, and the next one a second later.
        low_water_mark.expect(2 * PART, 1000, NOW_S + number)
        low_water_mark.expect(0, 2 * PART, NOW_S + number)
    low_water_mark.expect(2 * PART, 1000, NOW_S + 9)

    sender.sendall(bytes(1))
    assert not is_woken(receiver)


def test_a_transport_without_a_socket_is_ignored() -> None:
    LowWaterMark(Transport(None)).expect(4 * PART, PART, NOW_S)
