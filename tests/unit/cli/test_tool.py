"""Shared parts of tools: start and close of a client, reasons of errors, exit codes."""

import asyncio

import pytest

from barnabas.cli import outages, tool
from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import ToolFailed, add_client_options, client_settings, reason, run_reporting, started
from barnabas.client.errors import BrokerUnavailable, Refused, SomeRefused
from barnabas.protocol.error_codes import ErrorCode


class SlowClient:
    """Starts after a few iterations of the loop, or fails then."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.closed = 0

    async def start(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        self.closed += 1


async def use(client: SlowClient, error: Exception | None = None) -> int:
    async with started(client) as same:
        assert same is client
        if error is not None:
            raise error
    return 0


def test_a_client_is_closed_even_if_the_tool_fails() -> None:
    well, badly = SlowClient(), SlowClient()

    assert asyncio.run(use(well)) == 0
    with pytest.raises(ToolFailed):
        asyncio.run(use(badly, ToolFailed("no")))

    assert (well.closed, badly.closed) == (1, 1)


def test_a_wait_for_a_silent_broker_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outages, "PATIENCE_S", 0.0)

    asyncio.run(use(SlowClient()))

    assert capsys.readouterr() == ("", "waiting for a broker to respond ...\n")


def test_the_hint_is_cancelled_when_the_start_fails() -> None:
    async def fail() -> list[object]:
        loop = asyncio.get_running_loop()
        with pytest.raises(ToolFailed):
            await use(SlowClient(ToolFailed("no")))
        return [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]

    assert asyncio.run(fail()) == []


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ToolFailed("as it is"), "as it is"),
        (
            Refused(ErrorCode.TOPIC_ALREADY_EXISTS, about="topic a", message="Topic 'a' exists."),
            "Topic 'a' exists.",
        ),
        (Refused(ErrorCode.TOPIC_ALREADY_EXISTS, about="topic a"), "topic a: TOPIC_ALREADY_EXISTS"),
        (
            Refused(ErrorCode.BROKER_NOT_AVAILABLE, about="broker 7", message="there is none"),
            "broker 7: BROKER_NOT_AVAILABLE: there is none",
        ),
        (BrokerUnavailable(["a:1", "b:2"], "gone"), "no broker at a:1, b:2: gone"),
        (
            SomeRefused(
                {
                    "a": Refused(ErrorCode.INVALID_PARTITIONS, about="topic a", message="too few"),
                    "b": Refused(ErrorCode.INVALID_PARTITIONS, about="topic b", message="too many"),
                }
            ),
            "too few; too many",
        ),
    ],
)
def test_the_reason_is_the_brokers_message(error: tool.BarnabasError, why: str) -> None:
    assert reason(error) == why


def test_the_reason_includes_the_clients_notes() -> None:
    error = BrokerUnavailable(["a:1"], "gone")
    error.add_note("given up after 300 ms")

    assert reason(error) == "no broker at a:1: gone (given up after 300 ms)"


@pytest.mark.parametrize("to_stdout", [True, False])
def test_an_error_is_one_line_and_exit_code_one(capsys: pytest.CaptureFixture[str], to_stdout: bool) -> None:
    async def fail() -> int:
        raise ToolFailed("no")

    assert run_reporting(fail(), prefix="Error: ", to_stdout=to_stdout) == 1

    out, err = capsys.readouterr()
    assert (out, err) == (("Error: no\n", "") if to_stdout else ("", "Error: no\n"))


def test_bootstrap_servers_of_the_command_line_override_the_file(tmp_path: pytest.TempPathFactory) -> None:
    path = f"{tmp_path}/client.properties"
    with open(path, "w") as file:
        file.write("bootstrap.servers=a:1\nclient.id=me\n")
    parser = Parser(prog="x", description="")
    add_client_options(parser)
    options: Options = parser.parse_args(["--bootstrap-server", "b:2", "--command-config", path])

    assert client_settings(options) == {"bootstrap.servers": "b:2", "client.id": "me"}
