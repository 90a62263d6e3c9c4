"""The blocking consumer in its group: subscribing, committing, closing."""

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
        """Read what the group gives this member of these topics, or of those that match.

        The callbacks are called in this thread, inside of the calls that read, unsubscribe or close.
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
        """Give everything back, with on_revoked, and leave the group."""
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
        """Commit the position of everything that the script got so far, or these offsets."""
        is_calling = self._turns.is_calling

        async def there() -> None:
            wanted = offsets if offsets is not None else self._delivered()
            if is_calling:
                # The group waits for the callback, and this must not wait for the group.
                async with self._client.calling():
                    await self._client.commit(wanted)
            else:
                await self._client.commit(wanted)

        self._thread.run(there())

    @property
    def delivered(self) -> Mapping[tuple[str, int], int | OffsetAndMetadata]:
        """What commit() would commit: the position after the last message of each partition."""
        return self._look(self._delivered)

    def _delivered(self) -> Mapping[tuple[str, int], int | OffsetAndMetadata]:
        at, ahead = self._client.delivered, self._firsts()
        return {tp: OffsetAndMetadata(ahead[tp]) if tp in ahead else one for tp, one in at.items()}

    def group_metadata(self) -> Committer:
        """In whose name this member commits now; what a transaction needs to commit offsets with it."""
        return self._look(self._client.group_metadata)

    def committed(self, tps: Iterable[tuple[str, int]]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition, assigned or not; None if nothing."""
        return self._thread.run(self._client.committed(tps))

    def close(self) -> None:
        """Commit if that goes by itself, leave the group, and end connections and thread."""
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
            # Another thread closes it, too, and was faster.
            return
        finally:
            self._thread.close()
