"""The log tail keeps the last lines of one thread, and other handlers still see all lines."""

import logging
import threading
from collections.abc import Iterator

import pytest

from barnabas.testing.log_tail import LINES_MAX, LogTails, new_tail

logger = logging.getLogger("barnabas.server.somewhere")


@pytest.fixture
def tails() -> Iterator[LogTails]:
    tails = LogTails()
    yield tails
    tails.leave(threading.get_ident())


def test_only_lines_of_the_followed_thread_are_kept(tails: LogTails) -> None:
    tail = new_tail()
    tails.follow(threading.get_ident(), tail)

    logger.warning("mine n=%d", 1)
    other = threading.Thread(target=lambda: logger.warning("theirs"))
    other.start()
    other.join()

    assert [line.partition("WARNING ")[2] for line in tail] == ["barnabas.server.somewhere mine n=1"]


def test_only_the_last_lines_are_kept(tails: LogTails) -> None:
    tail = new_tail()
    tails.follow(threading.get_ident(), tail)

    for number in range(LINES_MAX + 5):
        logger.warning("line n=%d", number)

    assert len(tail) == LINES_MAX
    assert tail[-1].endswith(f"n={LINES_MAX + 4}")


def test_the_users_handlers_still_see_everything(tails: LogTails, caplog: pytest.LogCaptureFixture) -> None:
    tails.follow(threading.get_ident(), new_tail())

    logger.warning("seen by both")

    assert caplog.messages == ["seen by both"]


def test_the_users_levels_apply(tails: LogTails) -> None:
    tail = new_tail()
    tails.follow(threading.get_ident(), tail)

    logger.debug("not asked for")

    assert not tail
    assert logging.getLogger("barnabas").level == logging.NOTSET


def test_without_any_handler_warnings_still_reach_stderr(
    tails: LogTails, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    tails.follow(threading.get_ident(), new_tail())

    logger.warning("nobody listens")

    assert capsys.readouterr().err == "nobody listens\n"


def test_the_handler_is_removed_with_the_last_broker(tails: LogTails) -> None:
    before = list(logging.getLogger("barnabas").handlers)
    tails.follow(1, new_tail())
    tails.follow(2, new_tail())

    tails.leave(1)
    assert logging.getLogger("barnabas").handlers == [*before, tails]
    tails.leave(2)

    assert logging.getLogger("barnabas").handlers == before
