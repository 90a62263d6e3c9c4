"""The group methods of the blocking consumer: subscribe, commit, close."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking.reading import Reading
from barnabas.client.errors import ClientError, Closed
from barnabas.client.group.callbacks import Callback
from barnabas.client.group.offsets import Committer, OffsetAndMetadata


class Grouped(Reading):
    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: "re.Pattern[str] | str | None" = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Subscribe to topics by name or pattern.

        The callbacks run in the calling thread, during calls that read, unsubscribe or close.
        """
        self._turns.check("subscribe()")
        wrapped = self._turns.wrapped
        self._turns.run(
            self._client.subscribe(
                topics,
                pattern=pattern,
                on_assigned=wrapped(on_assigned),
                on_revoked=wrapped(on_revoked),
                on_lost=wrapped(on_lost),
            )
        )

    def unsubscribe(self) -> None:
        """Revoke all partitions, with on_revoked, and leave the group."""
        self._turns.check("unsubscribe()")

        async def there() -> None:
            await self._take_back()
            self._reader.put_down()
            await self._client.unsubscribe()

        self._turns.run(there(), ends=True)

    @property
    def subscription(self) -> frozenset[str]:
        return self._look(lambda: self._client.subscription)

    def commit(self, offsets: Mapping[tuple[str, int], int | OffsetAndMetadata] | None = None) -> None:
        """Commit the positions after all messages returned so far, or the given offsets."""
        is_calling = self._turns.is_calling

        async def there() -> None:
            wanted = offsets if offsets is not None else self._delivered()
            if is_calling:
                # The group waits for the callback, so the commit must not wait for the group.
                async with self._client.calling():
                    await self._client.commit(wanted)
            else:
                await self._client.commit(wanted)

        self._thread.run(there())

    @property
    def delivered(self) -> Mapping[tuple[str, int], int | OffsetAndMetadata]:
        """The offsets that commit() would commit: the position after the last message of each partition."""
        return self._look(self._delivered)

    def _delivered(self) -> Mapping[tuple[str, int], int | OffsetAndMetadata]:
        at, ahead = self._client.delivered, self._firsts()
        return {tp: OffsetAndMetadata(ahead[tp]) if tp in ahead else one for tp, one in at.items()}

    def group_metadata(self) -> Committer:
        """Return group, generation and member id, which a transaction needs to commit offsets."""
        return self._look(self._client.group_metadata)

    def committed(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offset of each partition, assigned or not; None if there is none."""
        return self._thread.run(self._client.committed(tps))

    def close(self) -> None:
        """Commit if enable.auto.commit is set, leave the group, and end connections and thread."""
        self._close(finished=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(finished=kind is None)

    def _close(self, *, finished: bool) -> None:
        if self._thread.closed:
            return
        self._turns.check("close()")

        async def there() -> None:
            if not finished:
                self._ahead.extendleft(reversed(self._in_hand))
            with suppress(ClientError):
                await self._take_back()
                self._reader.put_down()
            await self._client.close()

        try:
            self._turns.run(there(), ends=True)
        except Closed:
            # Another thread has closed it.
            return
        finally:
            self._thread.close()
