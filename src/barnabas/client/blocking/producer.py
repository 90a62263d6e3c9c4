"""The producer for scripts and threads."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.client.blocking.delivery import Delivery, Handed
from barnabas.client.blocking.handover import Handover
from barnabas.client.blocking.mirror import Blocking
from barnabas.client.deadline import Deadline
from barnabas.client.errors import Closed
from barnabas.client.ports import ClientPorts
from barnabas.client.producer.producer import Producer as AsyncProducer
from barnabas.records.record import Header

if TYPE_CHECKING:
    import pyarrow as pa


class Producer(Blocking[AsyncProducer]):
    """Ready when it is made. May be used by several threads at once; each one's records stay in order."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        super().__init__(lambda: AsyncProducer(settings, ports=ports, **named))
        self._handover = self._thread.run(self._new_handover())

    async def _new_handover(self) -> Handover:
        return Handover(self._thread, self._client)

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> Delivery:
        """Hand a record over. It waits for room only, at most max.block.ms, and then raises BufferFull.

        Everything else that is wrong, as a topic that is not there, the delivery tells.
        """
        # A copy: the loop looks at it later, and by then the user may have changed the list.
        record = Handed(topic, value, key, partition, timestamp_ms, tuple(headers) if headers else ())
        delivery = Delivery(self._handover, record=record)
        self._handover.put(delivery, record)
        return delivery

    def send_table(
        self, topic: str, table: "pa.Table | pa.RecordBatch", *, partition: int | None = None
    ) -> list[Delivery]:
        """The rows of an Arrow table, in order after what was sent before; one delivery a batch."""

        async def send() -> list[Delivery]:
            await self._handover.moved()
            sent = await self._client.send_table(topic, table, partition=partition)
            return [Delivery(self._handover, inner=each) for each in sent]

        return self._thread.run(send())

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was sent is delivered or has failed; TimeoutError after so many seconds."""

        async def flush() -> None:
            async with asyncio.timeout(timeout):
                await self._handover.moved()
                await self._client.flush()

        self._thread.run(flush())

    def close(self, timeout_ms: float | None = None) -> None:
        """Deliver what was sent, within the time if one is given; what is left then fails with Closed."""
        if self._thread.closed:
            return

        async def finish() -> None:
            deadline = None if timeout_ms is None else Deadline(timeout_ms)
            try:
                await self._handover.close(deadline)
            finally:
                await self._client.close(None if deadline is None else deadline.remaining_ms)

        try:
            self._thread.run(finish())
        except Closed:
            # Another thread closes it, too, and was faster.
            return
        finally:
            self._thread.close()
