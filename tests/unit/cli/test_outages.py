"""Output of a tool while its broker is unreachable, with real retries of the client."""

import asyncio
import logging
from random import Random

import pytest

from barnabas.cli.outages import Outages
from barnabas.client.deadline import Backoff, Deadline, retry
from barnabas.client.errors import BrokerUnavailable, ClientError, Refused
from barnabas.protocol.error_codes import ErrorCode

DOWN = BrokerUnavailable(["a:1"], "Connection refused")
NEW_TOPIC = Refused(ErrorCode.LEADER_NOT_AVAILABLE, about="topic new")


async def try_through(outages: Outages, *failures: ClientError) -> None:
    """Run a client call that fails with these errors and then succeeds."""
    left = list(failures)

    async def attempt() -> None:
        if left:
            raise left.pop(0)

    backoff = Backoff(first_ms=0, max_ms=0, rng=Random(1))
    await retry(attempt, deadline=Deadline(10_000), backoff=backoff, what="a test")


async def run_with_outages(*failures: ClientError) -> None:
    with Outages() as outages:
        await try_through(outages, *failures)


def test_an_unreachable_broker_is_reported_once_and_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(run_with_outages(DOWN, DOWN, DOWN))

    assert capsys.readouterr() == ("", "no broker at a:1: Connection refused; retrying\n")


def test_an_error_response_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(run_with_outages(NEW_TOPIC, NEW_TOPIC))

    assert capsys.readouterr() == ("", "")


def test_a_later_outage_is_reported_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        with Outages() as outages:
            await try_through(outages, DOWN)
            outages.started()
            await try_through(outages, DOWN)

    asyncio.run(story())

    assert capsys.readouterr().err == "no broker at a:1: Connection refused; retrying\n" * 2


def test_the_loggers_are_restored() -> None:
    logger = logging.getLogger("barnabas.client.deadline")
    before = (logger.level, list(logger.handlers))

    asyncio.run(run_with_outages())

    assert (logger.level, list(logger.handlers)) == before
