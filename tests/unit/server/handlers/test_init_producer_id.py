"""InitProducerId: ids that nobody else has; and no transactions yet."""

import asyncio
from typing import Any

import pytest

from barnabas.protocol.messages.transactions import (
    AllocateProducerIdsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.server.handlers import init_producer_id
from barnabas.server.handlers.init_producer_id import API
from support.hosted import FixedController, Hosted, one_topic
from support.log.managers import on_a_loop

LOADING, NOT_COORDINATOR, INVALID_REQUEST, INVALID_TIMEOUT = 14, 16, 42, 50


def block(start: int = 1000, size: int = 3, error: int = 0) -> FixedController:
    """A controller that gives the same block of ids each time."""
    return FixedController(
        AllocateProducerIdsResponse(error_code=error, producer_id_start=start, producer_id_len=size)
    )


async def ask(broker: Hosted, version: int = 5, **fields: Any) -> InitProducerIdResponse:
    fields.setdefault("transactional_id", None)
    answer = await broker.ask(API, InitProducerIdRequest(**fields), version)
    assert isinstance(answer, InitProducerIdResponse)
    return answer


def refused(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


@on_a_loop
async def test_every_producer_gets_its_own_id_with_epoch_zero() -> None:
    broker = await one_topic(controller=block(1000))

    answers = [await ask(broker, version) for version in (0, 3, 5)]

    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in answers] == [
        (0, 1000, 0),
        (0, 1001, 0),
        (0, 1002, 0),
    ]


@pytest.mark.parametrize(("producer", "epoch"), [(1000, 0), (123_456, 0), (1000, 32_767), (-5, 0)])
@on_a_loop
async def test_a_producer_with_id_and_epoch_gets_a_new_id(producer: int, epoch: int) -> None:
    broker = await one_topic(controller=block(2000))

    answer = await ask(broker, producer_id=producer, producer_epoch=epoch)

    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 2000, 0)


@pytest.mark.parametrize(("producer", "epoch"), [(1000, -1), (-1, 3)])
@on_a_loop
async def test_an_id_without_an_epoch_is_refused_and_so_is_an_epoch_without_an_id(
    producer: int, epoch: int
) -> None:
    controller = block()
    broker = await one_topic(controller=controller)

    assert await ask(broker, producer_id=producer, producer_epoch=epoch) == refused(INVALID_REQUEST)
    assert controller.asked == []


@on_a_loop
async def test_the_timeout_is_ignored_without_a_transactional_id() -> None:
    broker = await one_topic(controller=block())

    answers = [await ask(broker, transaction_timeout_ms=ms) for ms in (0, -1, 2**31 - 1)]

    assert [one.error_code for one in answers] == [0, 0, 0]


@on_a_loop
async def test_a_transactional_id_is_sent_to_its_coordinator_and_an_empty_one_nowhere() -> None:
    broker = await one_topic(controller=block())

    assert await ask(broker, transactional_id="mine", transaction_timeout_ms=1) == refused(NOT_COORDINATOR)
    assert await ask(broker, transactional_id="") == refused(INVALID_REQUEST)
    assert await ask(broker, transactional_id="mine", producer_id=4) == refused(INVALID_REQUEST)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
@on_a_loop
async def test_an_invalid_timeout_is_refused_before_the_coordinator_lookup(timeout_ms: int) -> None:
    broker = await one_topic(controller=block())

    answer = await ask(broker, transactional_id="mine", transaction_timeout_ms=timeout_ms)

    assert answer == refused(INVALID_TIMEOUT)


@on_a_loop
async def test_without_a_block_of_ids_the_error_is_retriable() -> None:
    broker = await one_topic(controller=block(error=41))

    assert await ask(broker) == refused(LOADING)


class SilentController(FixedController):
    async def call(self, request: object) -> object:
        await asyncio.Event().wait()
        return None


@on_a_loop
async def test_an_unresponsive_controller_causes_a_bounded_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(init_producer_id, "WAIT_MAX_S", 0)
    broker = await one_topic(controller=SilentController(None))

    assert await ask(broker) == refused(LOADING)
