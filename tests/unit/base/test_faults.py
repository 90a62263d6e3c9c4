"""Unforeseen exceptions in the log: the stack of the first, the number of the others."""

import logging

import pytest

from barnabas.base.faults import PLACES_MAX, QUIET_S, FaultReports, place_of

logger = logging.getLogger("test")


class Story:
    def __init__(self) -> None:
        self.now = 1000.0
        self.reports = FaultReports(lambda: self.now)

    def fail(self, what: str) -> None:
        try:
            raise ValueError(what)
        except ValueError as error:
            self.reports.report(logger, error, "request failed api=%s", "FETCH")

    def fail_elsewhere(self) -> None:
        try:
            raise ValueError("another place")
        except ValueError as error:
            self.reports.report(logger, error, "request failed api=%s", "FETCH")


def test_the_first_fault_of_a_place_is_logged_with_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()

    story.fail("bad")

    [line] = caplog.records
    assert line.exc_info is not None
    message = line.getMessage()
    assert message.startswith("request failed api=FETCH where=test_faults.py:")
    assert message.endswith("error=ValueError('bad') repeated=0")


def test_others_of_the_same_place_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    for number in range(1_000):
        story.fail(f"bad {number}")
    story.fail_elsewhere()
    assert len(caplog.records) == 2
    assert story.reports.total == 1_001

    story.now += QUIET_S
    story.fail("bad again")

    assert caplog.records[2].getMessage().endswith("error=ValueError('bad again') repeated=999")


def test_an_error_of_the_system_needs_no_stack(caplog: pytest.LogCaptureFixture) -> None:
    reports = FaultReports(lambda: 0.0)

    reports.report(logger, OSError(24, "Too many open files"), "callback failed")

    [line] = caplog.records
    assert not line.exc_info
    assert "Too many open files" in line.getMessage()


def test_places_are_forgotten_when_there_are_too_many(caplog: pytest.LogCaptureFixture) -> None:
    reports = FaultReports(lambda: 0.0)
    kinds = [type(f"Kind{number}", (Exception,), {}) for number in range(PLACES_MAX + 1)]

    for kind in [*kinds, kinds[-1], kinds[0]]:
        reports.report(logger, kind("bad"), "task failed")

    # The last one was remembered, the first one was not.
    assert len(caplog.records) == PLACES_MAX + 2


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert place_of(ValueError("made, not raised")) == "unknown"
