"""What a tool says while its broker is away, with the client's own tries under it."""

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
    """A call of the client that fails so, and then goes well."""
    left = list(failures)

    async def attempt() -> None:
        if left:
            raise left.pop(0)

    backoff = Backoff(first_ms=0, max_ms=0, rng=Random(1))
    await retry(attempt, deadline=Deadline(10_000), backoff=backoff, what="a test")


async def told_during(*failures: ClientError) -> None:
    with Outages() as outages:
        await try_through(outages, *failures)


def test_a_broker_that_is_down_is_told_at_once_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(told_during(DOWN, DOWN, DOWN))

    assert capsys.readouterr() == ("", "no broker at a:1: Connection refused; retrying\n")


def test_what_a_broker_answers_is_left_to_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(told_during(NEW_TOPIC, NEW_TOPIC))

    assert capsys.readouterr() == ("", "")


def test_a_broker_that_goes_away_later_is_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        with Outages() as outages:
            await try_through(outages, DOWN)
            outages.started()
            await try_through(outages, DOWN)

    asyncio.run(story())

    assert capsys.readouterr().err == "no broker at a:1: Connection refused; retrying\n" * 2


def test_the_loggers_are_left_as_they_were() -> None:
    logger = logging.getLogger("barnabas.client.deadline")
    before = (logger.level, list(logger.handlers))

    asyncio.run(told_during())

    assert (logger.level, list(logger.handlers)) == before
