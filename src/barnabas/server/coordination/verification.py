"""Ask the coordinator before the first batch of a transaction is appended to a log (KIP-890).

Clients of transaction version 1 add partitions themselves: the coordinator is asked whether the partition is
in the transaction. For clients of version 2 this call adds the partition. Only a coordinator on this broker
can be asked: brokers do not ask each other yet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from barnabas.base.ids import TopicPartition
from barnabas.coordinators.txn.adding import decide_add_or_verify
from barnabas.coordinators.txn.state import TxnProducer
from barnabas.protocol.error_codes import ErrorCode
from barnabas.server.coordination.calls import ask_shard, when_given
from barnabas.server.requests.api import Answer, Later
from barnabas.server.services import Services

Codes: TypeAlias = dict[TopicPartition, ErrorCode]

# Transient errors, which a client that knows nothing of coordinators should retry.
_PASSES: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
# Constants, because each access to an enum member is a look-up by name, and every batch needs these.
_FENCED: Final = ErrorCode.PRODUCER_FENCED
_ABORTABLE: Final = ErrorCode.TRANSACTION_ABORTABLE
_CONCURRENT: Final = ErrorCode.CONCURRENT_TRANSACTIONS


class Speech(NamedTuple):
    """Features that a client understands, by its request version."""

    # Transaction version 2: Produce itself adds partitions.
    adds: bool
    knows_abortable: bool

    @classmethod
    def of_produce(cls, version: int) -> "Speech":
        return cls(version > 11, version > 10)

    @classmethod
    def of_offset_commit(cls, version: int) -> "Speech":
        return cls(version > 4, version > 3)


def verify(
    broker: Services,
    producer: TxnProducer,
    partitions: Sequence[TopicPartition],
    speech: Speech,
    start_again: Callable[[], None],
) -> Codes | Awaitable[Codes]:
    """Return the coordinator's code for each partition.

    `start_again` restarts the verification of the logs before the coordinator is asked again: the marker of
    the last transaction has ended the verification before.
    """
    answer = _ask(broker, producer, partitions, speech)
    if isinstance(answer, Later):
        return _go_on(broker, producer, partitions, speech, answer, start_again)
    codes = _codes(answer, speech)
    if speech.adds and _CONCURRENT in codes.values():
        return _go_on(broker, producer, partitions, speech, answer, start_again)
    return codes


async def _go_on(
    broker: Services,
    producer: TxnProducer,
    partitions: Sequence[TopicPartition],
    speech: Speech,
    answer: Answer,
    start_again: Callable[[], None],
) -> Codes:
    """Await the answer. While markers of the last transaction are being written, ask again for a while."""
    settings = broker.settings.now
    until_ms = broker.clock.monotonic_ms() + settings.add_partitions_to_txn_retry_backoff_max_ms
    while True:
        codes = _codes(await when_given(answer), speech)
        is_early = speech.adds and _CONCURRENT in codes.values()
        if not is_early or broker.clock.monotonic_ms() >= until_ms:
            return codes
        await asyncio.sleep(settings.add_partitions_to_txn_retry_backoff_ms / 1000)
        start_again()
        answer = _ask(broker, producer, partitions, speech)


def _ask(
    broker: Services, producer: TxnProducer, partitions: Sequence[TopicPartition], speech: Speech
) -> Answer:
    adds = speech.adds
    return ask_shard(
        broker.transactions.host_of(producer.transactional_id),
        partial(dict.fromkeys, partitions),
        lambda shard, to, now: decide_add_or_verify(shard.table, producer, partitions, adds, to, now),
    )


def _codes(answer: object, speech: Speech) -> Codes:
    assert isinstance(answer, dict), f"unexpected response of the coordinator: {answer!r}"
    codes: Codes = answer
    for tp, code in codes.items():
        if code is _FENCED:
            codes[tp] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code is _ABORTABLE and not speech.knows_abortable:
            codes[tp] = ErrorCode.INVALID_TXN_STATE
    return codes


def for_produce(code: ErrorCode, speech: Speech) -> ErrorCode:
    """The code for the producer. Transient errors become one that it retries at the same leader."""
    if code in _PASSES or (code is _CONCURRENT and not speech.adds):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
