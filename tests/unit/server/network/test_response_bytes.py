"""Which connections are closed when responses take too much memory."""

from barnabas.server.network.response_bytes import LIMIT_MIN, MEMORY_SHARE, ResponseBytes, response_limit_of


class Reader:
    def __init__(self, size: int) -> None:
        self.size = size
        self.evicted: list[str] = []

    def response_bytes(self) -> int:
        return self.size

    def evict(self, why: str) -> None:
        self.evicted.append(why)


def test_the_largest_are_closed_until_the_others_fit() -> None:
    responses = ResponseBytes(100)
    readers = [Reader(size) for size in (10, 60, 0, 50, 30)]
    responses.watch(readers[:2])
    responses.watch(readers[2:])

    responses.check()

    assert [len(one.evicted) for one in readers] == [0, 1, 0, 0, 0]
    assert (responses.used, responses.evicted) == (90, 1)


def test_no_connection_is_closed_at_the_limit() -> None:
    responses = ResponseBytes(100)
    readers = [Reader(50), Reader(50)]
    responses.watch(readers)

    responses.check()

    assert [one.evicted for one in readers] == [[], []]
    assert responses.used == 100


def test_the_limit_is_a_share_of_the_memory() -> None:
    assert response_limit_of(32 << 30) == (32 << 30) // MEMORY_SHARE
    assert response_limit_of(1 << 30) == LIMIT_MIN
