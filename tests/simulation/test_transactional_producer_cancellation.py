"""A transaction that is cancelled at any step is seen whole or not at all, and the producer goes on.

Also with answers that are lost on the way. What was cancelled may have been committed already; the next
transaction begins when that is known.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from barnabas.client.producer.producer import Producer
from barnabas.client.producer.transaction_errors import MustAbort, NoTransaction
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.sim.world import World
from support.our_client.worlds import ORDERS, Wait
from support.txn.worlds import (
    BOTH,
    DoLater,
    DoSilently,
    SayLater,
    TransactionalBrokers,
    tell,
    transact,
    transacting,
)

# More than the longest of the stories has steps.
STEPS_MAX = 60
LOSABLE = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)


class Stepped:
    """Runs a coroutine, and cancels its task at its k-th wait."""

    def __init__(self, work: Coroutine[Any, Any, None], cancel_at: int) -> None:
        self._work = work
        self._cancel_at = cancel_at
        self.steps = 0

    def __await__(self) -> Generator[Any, Any, None]:
        waits = self._work.__await__()
        result: Any = None
        try:
            wanted = waits.send(None)
            while True:
                self.steps += 1
                if self.steps == self._cancel_at:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                try:
                    result = yield wanted
                except BaseException as error:
                    wanted = waits.throw(error)
                else:
                    wanted = waits.send(result)
        except StopIteration:
            return


async def block(producer: Producer) -> None:
    await transact(producer, b"a", b"b", b"c", offset=1)


async def calls(producer: Producer) -> None:
    await producer.begin_transaction()
    for number, value in enumerate((b"a", b"b", b"c")):
        await (await producer.send("orders", value, partition=number % 2))
    await producer.send_offsets_to_transaction({ORDERS: 1}, "billing")
    await producer.commit_transaction()


async def failing_block(producer: Producer) -> None:
    async with producer.transaction() as transaction:
        await (await producer.send("orders", b"a"))
        await transaction.send_offsets({ORDERS: 1}, "billing")
        raise KeyError


@BOTH
@pytest.mark.parametrize("lost", [None, *LOSABLE], ids=lambda key: "nothing" if key is None else key.name)
@pytest.mark.parametrize("use", [block, calls, failing_block])
def test_cancelled_at_any_step_it_is_whole_or_nothing(version: int, lost: ApiKey | None, use: Any) -> None:
    for cancel_at in range(1, STEPS_MAX):
        steps: list[int] = []

        async def story(world: World, brokers: TransactionalBrokers) -> None:
            async with transacting(world, request_timeout_ms=5_000, max_block_ms=60_000) as producer:
                if lost is not None:
                    brokers.on(lost, DoSilently())
                stepped = Stepped(use(producer), cancel_at)  # noqa: B023
                task = asyncio.ensure_future(run(stepped))
                await asyncio.wait([task])
                if not task.cancelled() and task.exception() is not None:
                    assert isinstance(task.exception(), KeyError)
                steps.append(stepped.steps)  # noqa: B023
                if use is calls and producer._transactions().state.is_unended:
                    # A block does this by itself.
                    await producer.abort_transaction()
                await transact(producer, b"next")

        brokers = tell(story, version)
        seen = [value for value in brokers.values() if value != b"next"]
        offset = brokers.offsets.get(("billing", ORDERS))
        assert (seen, offset) in (([b"a", b"b", b"c"], 1), ([], None)), f"cancelled at {cancel_at}"
        assert use is not failing_block or seen == []
        assert brokers.values().count(b"next") == 1, f"cancelled at {cancel_at}"
        if steps[0] < cancel_at:
            return
    raise AssertionError("it has more steps")


async def run(stepped: Stepped) -> None:
    await stepped


def test_cancelled_while_records_are_waited_for_it_can_still_be_committed() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            brokers.script = lambda arrival: Wait(2.0)
            await producer.send("orders", b"a")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.commit_transaction(), 1)
            await producer.send("orders", b"b")
            await producer.commit_transaction()

    assert tell(story).values() == [b"a", b"b"]


def test_the_call_after_a_cancelled_commit_reports_its_outcome() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            await producer.send("orders", b"a")
            brokers.on(ApiKey.END_TXN, DoLater(3.0))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.commit_transaction(), 1)
            with pytest.raises(NoTransaction):
                await producer.abort_transaction()
            await producer.commit_transaction()
            assert brokers.requests().count(ApiKey.END_TXN) == 1
            await transact(producer, b"b")

    assert tell(story).values() == [b"a", b"b"]


def test_offsets_of_a_cancelled_call_are_not_committed_by_mistake() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            brokers.on(ApiKey.TXN_OFFSET_COMMIT, DoLater(3.0))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(producer.send_offsets_to_transaction({ORDERS: 1}, "billing"), 1)
            with pytest.raises(MustAbort, match="it is unknown"):
                await producer.commit_transaction()
            await producer.abort_transaction()
            await transact(producer, b"a")

    brokers = tell(story)
    assert (brokers.values(), brokers.offsets) == ([b"a"], {})


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.ILLEGAL_GENERATION])
@BOTH
def test_a_late_response_about_offsets_does_not_affect_the_next_transaction(
    version: int, code: ErrorCode
) -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world, request_timeout_ms=4_000) as producer:
            await producer.begin_transaction()
            brokers.on(ApiKey.TXN_OFFSET_COMMIT, SayLater(code, 3.0))
            sending = asyncio.ensure_future(producer.send_offsets_to_transaction({ORDERS: 1}, "billing"))
            await asyncio.sleep(0.1)
            await producer.abort_transaction()
            await producer.begin_transaction()
            with pytest.raises(NoTransaction):
                await sending
            await producer.send("orders", b"a")
            await producer.commit_transaction()

    assert tell(story, version).values() == [b"a"]


def test_a_commit_waits_for_offsets_that_another_task_sends() -> None:
    async def story(world: World, brokers: TransactionalBrokers) -> None:
        async with transacting(world) as producer:
            await producer.begin_transaction()
            brokers.on(ApiKey.ADD_OFFSETS_TO_TXN, DoLater(3.0))
            sending = asyncio.ensure_future(producer.send_offsets_to_transaction({ORDERS: 1}, "billing"))
            await asyncio.sleep(0.1)
            await producer.commit_transaction()
            await sending

    assert tell(story, version=1).offsets == {("billing", ORDERS): 1}
