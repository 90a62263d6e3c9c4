"""The HTTP server for metrics: its responses, and its limits for clients. Time is virtual."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest

from barnabas.base.http_request import HttpRequest
from barnabas.base.metrics_server import (
    CONNECTIONS_MAX,
    EXCHANGE_TIMEOUT_S,
    PARTING_TIMEOUT_S,
    REFUSALS_MAX,
    REQUEST_BYTES_MAX,
    REQUEST_TIMEOUT_S,
    MetricsServer,
    Page,
    Response,
)
from barnabas.server.disk_space import DiskSpace
from barnabas.server.metrics.http_server import pages
from barnabas.sim.world import expecting_faults, run_sim
from support.hosted import one_topic
from support.log.managers import on_a_loop
from support.observed import sources_of
from support.prometheus_text import read_exposition

HOST = "127.0.0.1"
PORT = 9100
LAST_CHUNK = b"0\r\n\r\n"


def never() -> str | None:
    return None


async def answers(
    served: dict[str, Page],
    story: Callable[[MetricsServer], Awaitable[None]],
    host: str = HOST,
    port: int = PORT,
) -> None:
    server = MetricsServer(served)
    await server.start(host, port)
    try:
        await story(server)
    finally:
        await server.close()


async def exchange(data: bytes, host: str = HOST, port: int = PORT) -> bytes:
    """Send, and read until the server closes."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(data)
    found = await reader.read()
    writer.close()
    await writer.wait_closed()
    return found


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Read until the connection ends, cleanly or not."""
    found = b""
    try:
        while data := await reader.read(100_000):
            found += data
    except ConnectionError:
        pass
    return found


def get(path: str, *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: here", *headers, "", ""]).encode()


def parse(data: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body, with chunks joined; a truncated body is an error."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    version, status, _ = first.split(" ", 2)
    assert version == "HTTP/1.1"
    headers = dict(line.split(": ", 1) for line in lines)
    return int(status), headers, _joined(body) if "Transfer-Encoding" in headers else body


def _joined(body: bytes) -> bytes:
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            assert body == b"\r\n"
            return found
        assert body[length : length + 2] == b"\r\n"
        found, body = found + body[:length], body[length + 2 :]
    raise AssertionError("the answer broke off")


def small() -> dict[str, Page]:
    async def hello(_: HttpRequest) -> Response:
        return Response(HTTPStatus.OK, "text/plain", [b"hel", b"", b"lo"])

    return {"/hello": hello}


def ask(data: bytes, served: dict[str, Page] | None = None) -> tuple[int, dict[str, str], bytes]:
    """The response to one request, in its own simulation; with HEAD there is no body to parse."""

    async def story(_: Any) -> bytes:
        found = b""

        async def one(_server: MetricsServer) -> None:
            nonlocal found
            found = await exchange(data)

        await answers(served or small(), one)
        return found

    found = run_sim(story)
    if data.startswith(b"HEAD"):
        head, _, body = found.partition(b"\r\n\r\n")
        return (*parse(head + b"\r\n\r\n0\r\n\r\n")[:2], body)
    return parse(found)


def test_a_page_is_served_in_chunks_and_the_connection_closed() -> None:
    status, headers, body = ask(get("/hello"))

    assert (status, body) == (200, b"hello")
    assert headers == {
        "Content-Type": "text/plain",
        "Connection": "close",
        "Transfer-Encoding": "chunked",
    }


def test_old_clients_get_no_chunks() -> None:
    status, headers, body = ask(b"GET /hello HTTP/1.0\r\n\r\n")

    assert (status, body) == (200, b"hello")
    assert "Transfer-Encoding" not in headers


def test_head_returns_only_headers() -> None:
    status, headers, body = ask(get("/hello", method="HEAD"))

    assert (status, headers["Content-Type"], body) == (200, "text/plain", b"")


def test_the_path_excludes_query_and_host() -> None:
    assert ask(get("/hello?x=1"))[0] == 200
    assert ask(get("http://here:9100/hello"))[0] == 200
    assert ask(get("http://here:9100"))[0] == 404


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (get("/nothing"), 404),
        (get("/hello/"), 404),
        (get("/nothing", method="POST"), 404),
        (get("/hello", method="POST"), 405),
        (get("/hello", method="get"), 405),
        (get("/hello", version="2.0"), 505),
        (get("/hello", version="1.10"), 400),
        (b"GET /hello\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /hello HTTP/1.1\r\n\r\n", 400),
        (get("/hello", "No colon"), 400),
        (get("/hello", "Name : value"), 400),
        (get("/hello", " folded"), 400),
        (get("/hello", "A: \x00"), 400),
        (get("/hel\xfflo"), 400),
        (b"GET  /hello HTTP/1.1\r\nHost: here\r\n\r\n", 400),
    ],
)
def test_each_kind_of_invalid_request_has_its_own_status(data: bytes, status: int) -> None:
    assert ask(data)[0] == status


def test_an_invalid_method_gets_an_allow_header() -> None:
    assert ask(get("/hello", method="DELETE"))[1]["Allow"] == "GET, HEAD"


def test_a_request_that_is_too_large_is_refused() -> None:
    fits = get("/hello", "X: " + "y" * (REQUEST_BYTES_MAX - len(get("/hello", "X: "))))
    assert len(fits) == REQUEST_BYTES_MAX

    assert ask(fits)[0] == 200
    assert ask(get("/hello", "X: " + "y" * REQUEST_BYTES_MAX))[0] == 431
    assert ask(b"y" * (10 * REQUEST_BYTES_MAX))[0] == 431


def test_a_silent_client_times_out() -> None:
    async def story(world: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            began = world.loop.time()
            status, _, _ = parse(await exchange(b"GET /hello HT"))
            assert status == 408
            assert world.loop.time() - began == pytest.approx(REQUEST_TIMEOUT_S, abs=0.5)

        await answers(small(), one)

    run_sim(story)


def test_a_client_that_disconnects_before_its_request_gets_no_response() -> None:
    async def story(_: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            reader, writer = await asyncio.open_connection(HOST, PORT)
            writer.write(b"GET /hello")
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()

        await answers(small(), one)

    run_sim(story)


def endless() -> dict[str, Page]:
    def pieces() -> Iterator[bytes]:
        while True:
            yield b"x" * 10_000

    async def page(_: HttpRequest) -> Response:
        return Response(HTTPStatus.OK, "text/plain", pieces())

    return {"/endless": page}


def test_a_client_that_does_not_read_is_dropped_while_others_are_served() -> None:
    async def story(world: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            reader, writer = await asyncio.open_connection(HOST, PORT, limit=1_000)
            writer.write(get("/endless"))
            began = world.loop.time()
            assert parse(await exchange(get("/hello")))[0] == 200
            assert world.loop.time() - began < 1
            await asyncio.sleep(EXCHANGE_TIMEOUT_S + 1)
            assert not (await read_all(reader)).endswith(LAST_CHUNK)
            writer.close()

        await answers({**small(), **endless()}, one)

    run_sim(story)


def test_the_number_of_connections_is_limited() -> None:
    async def story(_: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            held = [await asyncio.open_connection(HOST, PORT) for _ in range(CONNECTIONS_MAX)]
            await asyncio.sleep(0.1)

            assert parse(await exchange(get("/hello")))[0] == 503

            held[0][1].close()
            await asyncio.sleep(0.1)
            assert parse(await exchange(get("/hello")))[0] == 200
            for _, writer in held:
                writer.close()

        await answers(small(), one)

    run_sim(story)


def test_above_the_limit_some_clients_get_an_error_and_the_rest_are_aborted() -> None:
    async def story(_: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            held = [await asyncio.open_connection(HOST, PORT) for _ in range(REFUSALS_MAX)]
            await asyncio.sleep(0.1)

            reader, writer = await asyncio.open_connection(HOST, PORT)

            assert await read_all(reader) == b""
            for _, each in (*held, (reader, writer)):
                each.close()

        await answers(small(), one)

    run_sim(story)


def test_a_client_that_stays_connected_after_its_response_is_dropped_soon() -> None:
    async def story(_: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            held = [await asyncio.open_connection(HOST, PORT) for _ in range(CONNECTIONS_MAX)]
            for _, writer in held:
                writer.write(get("/hello"))
            await asyncio.sleep(PARTING_TIMEOUT_S + 1)

            assert parse(await exchange(get("/hello")))[0] == 200
            for _, writer in held:
                writer.close()

        await answers(small(), one)

    run_sim(story)


@on_a_loop
async def test_the_loop_runs_other_work_between_pieces_of_a_response() -> None:
    turns = 0
    seen: list[int] = []

    def pieces() -> Iterator[bytes]:
        for _ in range(10):
            seen.append(turns)
            yield b"x"

    async def page(_: HttpRequest) -> Response:
        return Response(HTTPStatus.OK, "text/plain", pieces())

    async def one(server: MetricsServer) -> None:
        nonlocal turns
        ((_, port),) = server.addresses
        asking = asyncio.create_task(exchange(get("/slow"), HOST, port))
        while not asking.done():
            await asyncio.sleep(0)
            turns += 1

    await answers({"/slow": page}, one, HOST, 0)

    assert len(seen) == len(set(seen)) == 10


def test_a_failing_page_gets_an_error_response_and_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: HttpRequest) -> Response:
        raise RuntimeError("a bug")

    with caplog.at_level(logging.ERROR), expecting_faults():
        assert ask(get("/broken"), {"/broken": broken})[0] == 500

    assert "a bug" in caplog.text


def test_a_response_that_fails_in_the_middle_breaks_off(caplog: pytest.LogCaptureFixture) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("a bug")

    async def page(_: HttpRequest) -> Response:
        return Response(HTTPStatus.OK, "text/plain", pieces())

    async def story(_: Any) -> None:
        async def one(_server: MetricsServer) -> None:
            reader, writer = await asyncio.open_connection(HOST, PORT)
            writer.write(get("/half"))
            assert not (await read_all(reader)).endswith(LAST_CHUNK)
            writer.close()

        await answers({"/half": page}, one)

    with caplog.at_level(logging.ERROR), expecting_faults():
        run_sim(story)

    assert "a bug" in caplog.text


def test_close_drops_connections_and_frees_the_port() -> None:
    async def story(_: Any) -> None:
        server = MetricsServer(small())
        await server.start(HOST, PORT)
        reader, writer = await asyncio.open_connection(HOST, PORT)
        await asyncio.sleep(0.1)

        await server.close()
        await server.close()

        assert await reader.read() == b""
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection(HOST, PORT)
        writer.close()

    run_sim(story)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@on_a_loop
async def test_it_listens_on_ipv4_and_ipv6(host: str) -> None:
    async def one(server: MetricsServer) -> None:
        ((_, port),) = server.addresses
        assert parse(await exchange(get("/hello"), host, port))[2] == b"hello"

    try:
        await answers(small(), one, host, 0)
    except OSError as error:
        if host == "::1" and "assign" in str(error):
            pytest.skip("this machine has no IPv6")
        raise


# What a broker serves


@pytest.mark.parametrize(
    ("accept", "open_metrics"),
    [
        ("*/*", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text;q=0, */*", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2", True),
        ("application/OpenMetrics-Text", True),
    ],
)
@on_a_loop
async def test_metrics_have_the_requested_dialect(accept: str, open_metrics: bool) -> None:
    broker = await one_topic()
    space = DiskSpace(broker.logs, broker.executor, broker.services.tasks)
    served = pages(sources_of(broker), space, unhealthy=never, unready=never)

    response = await served["/metrics"](HttpRequest("GET", "/metrics", 1, {"accept": accept}))

    assert response.type.startswith("application/openmetrics-text" if open_metrics else "text/plain")
    families = read_exposition(b"".join(response.pieces), open_metrics=open_metrics)
    assert len(families["barnabas_log_directory_free_bytes"].samples) == 2


@pytest.mark.parametrize("path", ["/health", "/ready"])
@on_a_loop
async def test_a_problem_is_reported_with_an_error_status(path: str) -> None:
    broker = await one_topic()
    space = DiskSpace(broker.logs, broker.executor, broker.services.tasks)
    complaint: str | None = "not let in yet"

    def complain() -> str | None:
        return complaint

    def other() -> str | None:
        return "the other one"

    both = {"/health": (complain, other), "/ready": (other, complain)}[path]
    served = pages(sources_of(broker), space, unhealthy=both[0], unready=both[1])
    request = HttpRequest("GET", path, 1, {})

    bad = await served[path](request)
    complaint = None
    good = await served[path](request)

    assert (bad.status, list(bad.pieces)) == (503, [b"not let in yet\n"])
    assert (good.status, list(good.pieces)) == (200, [b"ok\n"])
