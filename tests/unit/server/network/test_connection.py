"""One connection in simulated time: order, pipelining, limits, and ways to close."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from barnabas.base.clock import SystemClock
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request, encode_request
from barnabas.protocol.messages.cluster import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.offsets import ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.network.admission import Admitted, ConnectionLimits
from barnabas.server.network.backlog import BEGUN_AT_ONCE_MAX
from barnabas.server.network.connection import PIPELINED_MAX, WAITING_BYTES_MAX
from barnabas.server.network.large_frames import SMALL_READS_MAX
from barnabas.server.network.listener import ClientProtocol, LargeFrameProtocol, Listener
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.network.response_bytes import ResponseBytes
from barnabas.server.requests.api import (
    CLOSE,
    NO_ANSWER,
    Answer,
    Api,
    Context,
    Dispatcher,
    Handle,
    Later,
    Refuse,
)
from barnabas.server.settings.endpoints import Endpoint
from barnabas.sim.world import World, expecting_faults, run_sim
from support.wire.frames import RawClient

pytestmark = pytest.mark.kernel

FIRST, SECOND = ApiKey.API_VERSIONS, ApiKey.LIST_OFFSETS
FRAME_MAX = 1_000_000


def row(key: ApiKey, versions: range, handle: Handle, refuse: Refuse) -> Api:
    return Api(key, versions=versions, handle=handle, refuse=refuse)


class Desk:
    """Handlers for two APIs that do what a test says; `seen` is what was begun, in order."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.first: Callable[[Request], Answer] = lambda _: ApiVersionsResponse()
        self.second: Callable[[Request], Answer] = lambda _: ListOffsetsResponse()

    def apis(self) -> tuple[Api, ...]:
        def refuse_first(_body: Any, _version: int, code: ErrorCode) -> object:
            return ApiVersionsResponse(error_code=code)

        def refuse_second(_body: Any, _version: int, _code: ErrorCode) -> object:
            return ListOffsetsResponse(throttle_time_ms=-1)

        return (
            row(FIRST, range(5), self._begun(lambda request: self.first(request)), refuse_first),
            row(SECOND, range(1, 12), self._begun(lambda request: self.second(request)), refuse_second),
        )

    def _begun(self, answer: Callable[[Request], Answer]) -> Callable[[Context, Request], Answer]:
        def handle(_ctx: Context, request: Request) -> Answer:
            self.seen.append(request.correlation_id)
            return answer(request)

        return handle


class Place:
    """A listener with a desk behind it, in a world."""

    def __init__(self, world: World, listener: Listener, desk: Desk) -> None:
        self.world = world
        self.listener = listener
        self.desk = desk
        self.clients: list[RawClient] = []

    async def connect(self) -> RawClient:
        self.clients.append(await RawClient.connect("127.0.0.1", self.listener.port))
        return self.clients[-1]


@asynccontextmanager
async def served(
    world: World,
    admitted: Admitted | None = None,
    *,
    is_protected: bool = False,
    response_bytes: ResponseBytes | None = None,
    **limits: Any,
) -> AsyncIterator[Place]:
    desk = Desk()
    pool = ConnectionPool(
        clock=world.clock,
        limits=ConnectionLimits(
            **{
                "connections_max": 10,
                "per_host_max": 10,
                "per_host_overrides": {},
                "idle_ms": 600_000,
                **limits,
            }
        ),
        request_bytes_max=FRAME_MAX,
        stats=RequestStats(),
        context=lambda host: Context(None, listener="PLAINTEXT", client_address=host),  # type: ignore[arg-type]
        admitted=admitted,
        is_protected=is_protected,
        response_bytes=response_bytes,
    )
    endpoint = Endpoint(name="PLAINTEXT", host="127.0.0.1", port=0, protocol="PLAINTEXT")
    listener = Listener(endpoint, pool, Dispatcher(desk.apis()), backlog=50)
    await listener.bind()
    await listener.serve()
    sweep = asyncio.create_task(pool.run())
    place = Place(world, listener, desk)
    try:
        yield place
    finally:
        for client in place.clients:
            client.close()
        sweep.cancel()
        await listener.close(1)


def story(do: Callable[[Place], Awaitable[None]], **limits: Any) -> None:
    async def run(world: World) -> None:
        async with served(world, **limits) as place:
            await do(place)

    run_sim(run)


def ask_first(client: RawClient) -> int:
    return client.send(ApiVersionsRequest(), 0, key=FIRST)


def ask_second(client: RawClient) -> int:
    return client.send(ListOffsetsRequest(replica_id=-1), 1, key=SECOND)


def test_responses_keep_the_order_of_requests_if_the_first_waits() -> None:
    async def do(place: Place) -> None:
        waiting = Later()
        place.desk.first = lambda _: waiting
        client = await place.connect()

        numbers = [ask_first(client), ask_second(client), ask_second(client)]
        await asyncio.sleep(1)
        begun = list(place.desk.seen)
        waiting.finish(ApiVersionsResponse(error_code=7))

        assert begun == numbers, "those behind the one that waits were begun"
        assert [(await client.answer())[0] for _ in numbers] == numbers

    story(do)


@pytest.mark.parametrize("comes_later", [False, True])
def test_no_request_starts_while_another_is_processed(comes_later: bool) -> None:
    async def do(place: Place) -> None:
        done = asyncio.Event()

        async def work() -> object:
            await done.wait()
            return ApiVersionsResponse()

        place.desk.first = lambda _: work()
        client = await place.connect()

        ask_first(client)
        if comes_later:
            await asyncio.sleep(1)
        ask_second(client)
        await asyncio.sleep(1)
        begun = list(place.desk.seen)
        done.set()
        await client.answer()
        await client.answer()

        assert begun == [0]
        assert place.desk.seen == [0, 1]

    story(do)


def test_new_requests_start_after_those_of_the_backlog() -> None:
    async def do(place: Place) -> None:
        client = await place.connect()
        ask_first(client)
        await client.answer()
        [connection] = place.listener.pool._connections
        many = b"".join(_frame(number) for number in range(1, BEGUN_AT_ONCE_MAX + 9))

        connection.data_received(many)
        connection.data_received(_frame(BEGUN_AT_ONCE_MAX + 9))
        await asyncio.sleep(1)

        assert place.desk.seen == list(range(BEGUN_AT_ONCE_MAX + 10))

    story(do)


def _frame(number: int) -> bytes:
    return encode_request(ApiVersionsRequest(), 0, key=FIRST, correlation_id=number, client_id="raw")


def test_an_exception_of_a_handler_gets_a_response_and_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async def do(place: Place) -> None:
        def broken(_: Request) -> Answer:
            raise RuntimeError("a bug")

        place.desk.first = broken
        client = await place.connect()

        ask_first(client)
        _, answer = await client.answer()
        ask_second(client)
        await client.answer()

        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    with expecting_faults():
        story(do)

    assert [record.exc_info is not None for record in caplog.records if record.levelno >= logging.ERROR] == [
        True
    ]


def test_an_exception_of_a_coroutine_gets_a_response_and_keeps_the_connection() -> None:
    async def do(place: Place) -> None:
        async def work() -> object:
            await asyncio.sleep(1)
            raise RuntimeError("a bug")

        place.desk.first = lambda _: work()
        client = await place.connect()

        ask_first(client)
        ask_second(client)

        assert (await client.answer())[1].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await client.answer())[0] == 1

    with expecting_faults():
        story(do)


def test_a_flood_of_requests_is_not_read_beyond_the_limit() -> None:
    async def do(place: Place) -> None:
        waiting: list[Later] = []

        def wait(_: Request) -> Answer:
            waiting.append(Later())
            return waiting[-1]

        place.desk.second = wait
        client = await place.connect()
        total = 5 * PIPELINED_MAX

        for _ in range(total):
            ask_second(client)
        await asyncio.sleep(10)
        at_first = len(place.desk.seen)
        answered = []
        for number in range(total):
            waiting[number].finish(ListOffsetsResponse())
            answered.append((await client.answer())[0])

        assert at_first == PIPELINED_MAX
        assert answered == list(range(total))

    story(do)


def test_a_client_that_does_not_read_does_not_fill_our_memory() -> None:
    async def do(place: Place) -> None:
        large = b"x" * 100_000
        from barnabas.protocol.messages.cluster import ApiVersion

        rows = [ApiVersion(api_key=1, min_version=0, max_version=0)] * (len(large) // 6)
        place.desk.first = lambda _: ApiVersionsResponse(api_keys=rows)
        client = await place.connect()
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        total = 200

        for _ in range(total):
            ask_first(client)
        await asyncio.sleep(60)
        begun_unread = len(place.desk.seen)
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        answered = [(await client.answer())[0] for _ in range(total)]

        assert begun_unread * len(large) < WAITING_BYTES_MAX + 4_000_000
        assert begun_unread < total
        assert answered == list(range(total))

    story(do)


def test_a_reader_that_holds_the_most_is_closed_when_memory_is_short() -> None:
    responses = ResponseBytes(100_000)

    async def do(place: Place) -> None:
        from barnabas.protocol.messages.cluster import ApiVersion

        rows = [ApiVersion(api_key=1, min_version=0, max_version=0)] * 20_000
        place.desk.first = lambda _: ApiVersionsResponse(api_keys=rows)
        stuck, reader = await place.connect(), await place.connect()
        stuck.reader._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(200):
            ask_first(stuck)
        for _ in range(3):
            ask_first(reader)
            await reader.answer()
        await asyncio.sleep(5)
        [size, taken] = sorted(
            (one.response_bytes() for one in place.listener.pool._connections), reverse=True
        )
        assert size > 100_000
        assert taken == 0

        responses.check()
        await asyncio.sleep(1)

        assert (responses.used, responses.evicted, len(place.listener.pool)) == (0, 1, 1)
        ask_first(reader)
        await reader.answer()

    story(do, response_bytes=responses)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x02\x00\x00",
        b"\x00\x00\x00\x0a\x00\x63\x00\x00\x00\x00\x00\x01\xff\xff",
        b"\x00\x00\x00\x0a\x00\x02\x00\x63\x00\x00\x00\x01\xff\xff",
    ],
    ids=["2 GB", "negative", "http", "tls", "empty", "short", "unknown key", "unknown version"],
)
def test_an_invalid_request_closes_the_connection_with_one_log_line(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="barnabas.server.network.connection")

    async def do(place: Place) -> None:
        client, other = await place.connect(), await place.connect()

        client.writer.write(garbage)
        closed = await asyncio.wait_for(client.is_closed(), 5)
        ask_first(other)
        await other.answer()

        assert closed
        assert len(place.listener.pool) == 1

    story(do)

    lines = [record for record in caplog.records if record.name.endswith("connection")]
    assert len(lines) == 1


def test_requests_before_garbage_are_still_answered() -> None:
    async def do(place: Place) -> None:
        waiting = Later()
        place.desk.first = lambda _: waiting
        client = await place.connect()

        ask_first(client)
        client.writer.write(b"\xff\xff\xff\xff")
        await asyncio.sleep(1)
        waiting.finish(ApiVersionsResponse())

        assert (await client.answer())[0] == 0
        assert await client.is_closed()

    story(do)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def do(place: Place) -> None:
        client = await place.connect()
        client.writer.write(b"\x00\x00\x00\x0a\x00\x12\x00\x63\x00\x00\x00\x05\xff\xff")

        frame = await client.frame()

        assert frame == b"\x00\x00\x00\x05" + b"\x00\x23" + b"\x00\x00\x00\x01" + b"\x00\x12\x00\x00\x00\x04"

    story(do)


def test_no_answer_sends_nothing_and_close_closes_the_connection() -> None:
    async def do(place: Place) -> None:
        client = await place.connect()
        place.desk.first = lambda _: NO_ANSWER

        ask_first(client)
        ask_second(client)
        answered, _ = await client.answer()
        place.desk.first = lambda _: CLOSE
        ask_first(client)

        assert answered == 1
        assert await client.is_closed()

    story(do)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    async def do(place: Place) -> None:
        idle, busy, half, waiting = [await place.connect() for _ in range(4)]
        work = asyncio.get_running_loop().create_future()
        place.desk.first = lambda _: finished(work)
        place.desk.second = lambda _: Later()
        ask_first(busy)
        ask_second(waiting)
        half.writer.write(b"\x00\x00")

        await asyncio.sleep(16)

        assert len(place.listener.pool) == 1
        assert await idle.is_closed()
        assert await half.is_closed()
        # As with Kafka, which closes a connection whose fetch has to wait for longer.
        assert await waiting.is_closed()
        work.set_result(ApiVersionsResponse())
        assert (await busy.answer())[0] == 0

    async def finished(work: "asyncio.Future[object]") -> object:
        return await work

    story(do, idle_ms=10_000)


def test_a_frame_that_trickles_in_does_not_keep_a_connection_open() -> None:
    async def do(place: Place) -> None:
        client = await place.connect()
        for byte in b"\x00\x00\x10\x00" + bytes(30):
            client.writer.write(bytes([byte]))
            await asyncio.sleep(1)

        assert await client.is_closed()

    story(do, idle_ms=10_000)


def test_connections_beyond_the_limits_are_refused() -> None:
    async def do(place: Place) -> None:
        inside = [await place.connect() for _ in range(3)]
        outside = await place.connect()

        assert await outside.is_closed()
        inside[0].close()
        await asyncio.sleep(1)
        again = await place.connect()
        ask_first(again)
        await again.answer()
        assert place.listener.pool.refused == 1

    story(do, per_host_max=3)


def test_an_override_applies_only_to_its_host() -> None:
    async def do(place: Place) -> None:
        assert not await asyncio.wait_for(_answers(await place.connect()), 5)

    async def _answers(client: RawClient) -> bool:
        ask_first(client)
        return not await client.is_closed()

    story(do, per_host_overrides={"127.0.0.1": 0})


def test_a_stop_finishes_requests_and_ends_waiting_fetches() -> None:
    async def do(place: Place) -> None:
        waiting = Later()
        waiting.on_hurry = lambda: waiting.finish(ApiVersionsResponse(error_code=5))
        place.desk.first = lambda _: waiting

        async def work() -> object:
            await asyncio.sleep(0.5)
            return ListOffsetsResponse()

        place.desk.second = lambda _: work()
        client = await place.connect()
        ask_first(client)
        ask_second(client)
        await asyncio.sleep(0.1)

        await place.listener.close(5)

        assert (await client.answer())[1].error_code == 5
        assert (await client.answer())[0] == 1
        assert await client.is_closed()

    story(do)


def test_a_stop_does_not_wait_forever() -> None:
    async def do(place: Place) -> None:
        place.desk.first = lambda _: Later()
        client = await place.connect()
        ask_first(client)
        await asyncio.sleep(1)
        before = place.world.clock.monotonic_ms()

        await place.listener.close(2)

        assert place.world.clock.monotonic_ms() - before == pytest.approx(2000, abs=200)
        assert await client.is_closed()

    story(do)


def test_a_disconnect_cancels_deferred_responses() -> None:
    async def do(place: Place) -> None:
        cancelled = []
        waiting = Later()
        waiting.on_cancel = lambda: cancelled.append(1)
        place.desk.first = lambda _: waiting
        client = await place.connect()
        ask_first(client)
        await asyncio.sleep(1)

        client.writer.transport.abort()
        await asyncio.sleep(1)

        assert cancelled == [1]
        assert len(place.listener.pool) == 0

    story(do)


def test_a_response_that_cannot_be_encoded_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def do(place: Place) -> None:
        waiting = Later()
        place.desk.first = lambda _: waiting
        client = await place.connect()
        ask_first(client)
        await asyncio.sleep(1)

        waiting.finish(ApiVersionsResponse(error_code="not a number"))  # type: ignore[arg-type]

        assert await asyncio.wait_for(client.is_closed(), 5)

    with expecting_faults():
        story(do)

    assert any("not encodable" in record.message for record in caplog.records)


def test_listeners_that_share_their_limits_count_together() -> None:
    admitted = Admitted()

    async def run(world: World) -> None:
        async with (
            served(world, admitted=admitted, per_host_max=2) as one,
            served(world, admitted=admitted, per_host_max=2) as other,
        ):
            await one.connect()
            inside = await other.connect()
            outside = await one.connect()

            assert await outside.is_closed()
            inside.close()
            await asyncio.sleep(1)
            again = await one.connect()
            ask_first(again)
            await again.answer()

    run_sim(run)


def test_a_new_broker_connection_replaces_the_longest_idle_client() -> None:
    admitted = Admitted()

    async def run(world: World) -> None:
        async with (
            served(world, admitted, connections_max=2) as clients,
            served(world, admitted, connections_max=2, is_protected=True) as brokers,
        ):
            idle, busy = await clients.connect(), await clients.connect()
            await asyncio.sleep(1)
            ask_first(busy)
            await busy.answer()

            broker = await brokers.connect()

            ask_first(broker)
            await broker.answer()
            assert await idle.is_closed()
            ask_first(busy)
            await busy.answer()

    run_sim(run)


def test_idle_connections_are_closed_when_the_limit_is_lowered() -> None:
    async def do(place: Place) -> None:
        idle, busy = await place.connect(), await place.connect()
        await asyncio.sleep(1)
        ask_first(busy)
        await busy.answer()
        pool = place.listener.pool

        pool.change_limits(replace(pool.limits, connections_max=1))

        assert await idle.is_closed()
        ask_first(busy)
        await busy.answer()

    story(do)


LOOPS = pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


def of_nobody(peer: str) -> Context:
    return Context(None, listener="PLAINTEXT", client_address=peer)  # type: ignore[arg-type]


async def really_served(desk: Desk, host: str, context: Callable[[str], Context] = of_nobody) -> Listener:
    limits = ConnectionLimits(connections_max=9, per_host_max=9, per_host_overrides={}, idle_ms=600_000)
    pool = ConnectionPool(
        clock=SystemClock(),
        limits=limits,
        request_bytes_max=FRAME_MAX,
        stats=RequestStats(),
        context=context,
    )
    endpoint = Endpoint(name="PLAINTEXT", host=host, port=0, protocol="PLAINTEXT")
    listener = Listener(endpoint, pool, Dispatcher(desk.apis()), backlog=50)
    await listener.bind()
    await listener.serve()
    return listener


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@LOOPS
def test_real_sockets_of_both_families_are_served(host: str, factory: Callable[[], Any]) -> None:
    async def real() -> None:
        listener = await really_served(Desk(), host)
        client = await RawClient.connect(host, listener.port)

        numbers = [ask_first(client), ask_second(client)]

        assert [(await client.answer())[0] for _ in numbers] == numbers
        await listener.close(5)
        assert await client.is_closed()
        client.close()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(real())


@LOOPS
def test_large_requests_use_their_own_buffer_and_small_ones_bytes(
    factory: Callable[[], Any],
) -> None:
    async def real() -> None:
        desk = Desk()
        names: list[str] = []

        def keep_name(request: Request) -> ListOffsetsResponse:
            names.extend(topic.name for topic in request.body.topics)
            return ListOffsetsResponse()

        desk.second = keep_name
        listener = await really_served(desk, "127.0.0.1")
        client = await RawClient.connect("127.0.0.1", listener.port)
        [connection] = listener.pool._connections

        async def asked(count: int, topics: list[str]) -> type:
            """So many times, one after the other. How the next request will be received."""
            rows = [ListOffsetsTopic(name=name, partitions=[]) for name in topics]
            for _ in range(count):
                number = client.send(ListOffsetsRequest(replica_id=-1, topics=rows), 1, key=SECOND)
                assert (await client.answer())[0] == number
            return type(connection.transport.get_protocol())

        large = [f"{number:030000}" for number in range(20)]
        assert await asked(1, ["small"]) is ClientProtocol
        assert await asked(1, large) is LargeFrameProtocol
        assert await asked(SMALL_READS_MAX // 2, ["between"]) is LargeFrameProtocol
        assert await asked(2, large) is LargeFrameProtocol
        assert await asked(SMALL_READS_MAX // 2 + 5, ["between"]) is LargeFrameProtocol
        assert await asked(SMALL_READS_MAX, ["small"]) is ClientProtocol
        assert await asked(1, large) is LargeFrameProtocol

        half, all_ = SMALL_READS_MAX // 2, SMALL_READS_MAX
        between, again, after = ["between"] * half, ["between"] * (half + 5), ["small"] * all_
        assert names == ["small", *large, *between, *large, *large, *again, *after, *large]
        client.close()
        await listener.close(5)

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(real())


@LOOPS
def test_a_failed_connection_setup_closes_it_with_one_log_line(
    factory: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Here the context fails; in production the socket may be gone, or there is no memory."""

    def context(_host: str) -> Context:
        raise RuntimeError("no context")

    async def real() -> None:
        listener = await really_served(Desk(), "127.0.0.1", context)
        client = await RawClient.connect("127.0.0.1", listener.port)
        other = await RawClient.connect("127.0.0.1", listener.port)

        assert await client.is_closed()
        # While one of them may be half made.
        await listener.close(5)
        assert await other.is_closed()
        client.close()
        other.close()
        assert len(listener.pool) == 0
        assert listener.pool.admission.count == 0

    with caplog.at_level(logging.WARNING), asyncio.Runner(loop_factory=factory) as runner:
        runner.run(real())

    assert ["connection failed" in record.message for record in caplog.records] == [True, True]
    assert not any(record.exc_info for record in caplog.records)
