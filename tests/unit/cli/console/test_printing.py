"""Printing of records: which records are done, and a slow or closed reader of the output."""

import asyncio
import io
import threading
from collections.abc import Coroutine
from contextlib import redirect_stdout
from typing import Any

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.cli.console.printing import OutputClosed, Printer


class NoText(BarnabasError):
    pass


def formatted(message: bytes) -> bytes:
    if message == b"bad":
        raise NoText("no text")
    return message + b"\n"


class Output(io.BytesIO):
    """A stdout whose writes wait for `gate`; with `broken` set it is a closed pipe."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False
        self.written_by: set[int] = set()

    def write(self, data: object) -> int:
        self.written_by.add(threading.get_ident())
        assert self.gate.wait(60), "it was never opened"
        if self.broken:
            raise BrokenPipeError
        return super().write(data)  # type: ignore[arg-type]


@pytest.fixture
def output() -> Output:
    return Output()


def run(work: Coroutine[Any, Any, None], output: Output) -> None:
    """Run with this object as standard output, with a timeout."""
    with redirect_stdout(io.TextIOWrapper(output, write_through=True)) as text:
        try:
            asyncio.run(asyncio.wait_for(work, 10))
        finally:
            # Otherwise the wrapper would close the output when it is garbage-collected.
            text.detach()


def printer(*, skip_errors: bool = False, in_thread: bool = False) -> Printer:
    return Printer(formatted, skip_errors=skip_errors, in_thread=in_thread)


@pytest.mark.parametrize("in_thread", [False, True])
def test_an_unprintable_record_is_done_and_later_ones_are_not(output: Output, in_thread: bool) -> None:
    printing = printer(in_thread=in_thread)

    with pytest.raises(NoText):
        run(printing.print([b"a", b"bad", b"c", b"d"]), output)

    assert output.getvalue() == b"a\n"
    assert (printing.count, printing.done) == (2, 2)


def test_a_skipped_record_is_done(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    printing = printer(skip_errors=True)

    run(printing.print([b"bad"]), output)
    run(printing.print([b"a", b"bad", b"c"]), output)

    assert output.getvalue() == b"a\nc\n"
    assert (printing.count, printing.done) == (4, 4)
    assert capsys.readouterr().err.count("skipping this message: no text\n") == 2


@pytest.mark.parametrize("in_thread", [False, True])
def test_an_unwritten_record_is_not_done(output: Output, in_thread: bool) -> None:
    printing = printer(in_thread=in_thread)
    run(printing.print([b"a"]), output)
    output.broken = True

    with pytest.raises(OutputClosed):
        run(printing.print([b"b", b"c"]), output)

    assert (printing.count, printing.done) == (3, 1)


def test_a_blocked_write_in_a_thread_does_not_block_the_loop(output: Output) -> None:
    printing = printer(in_thread=True)
    output.gate.clear()

    async def others_go_on() -> None:
        task = asyncio.create_task(printing.print([b"a"]))
        while not output.written_by:
            await asyncio.sleep(0)
        assert not task.done()
        output.gate.set()
        await task

    run(others_go_on(), output)

    assert output.getvalue() == b"a\n"
    assert threading.get_ident() not in output.written_by


def test_a_cancelled_write_completes(output: Output) -> None:
    printing = printer(in_thread=True)
    output.gate.clear()

    async def cancelled_meanwhile() -> None:
        task = asyncio.create_task(printing.print([b"a", b"b"]))
        while not output.written_by:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        output.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled_meanwhile(), output)

    assert output.getvalue() == b"a\nb\n"
    assert printing.done == 2
