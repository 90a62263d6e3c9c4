"""One call of the admin client: whom it asks, how often, and what becomes of each thing it asks for.

A call is about things that have keys: topics, partitions, resources. An attempt asks for some of them and
says what became of each, a value or the error. settle() makes attempts until nothing is left that is worth
asking for again, or the time is over. One thing that is refused does not keep the others from being done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.base.ids import TopicPartition, format_uuid
from barnabas.base.values import value
from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.deadline import Backoff, Deadline
from barnabas.client.errors import (
    ClientError,
    ConnectionLost,
    Refused,
    RequestTimedOut,
    SomeRefused,
    UnsupportedByBroker,
    is_retriable,
    refused,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# How long it is worth asking for a topic, a partition or a broker that nobody knows: a broker may hear of
# what was made a moment ago a little later than others. Kafka's client asks until its time is over.
UNKNOWN_MS_MAX: Final = 5_000
# Retriable by their class in Kafka, but here they are the answer to what was asked.
_ANSWERS: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    )
)

Outcome: TypeAlias = V | ClientError


class PartlyRefused(SomeRefused):
    """Some of the things asked for were refused. `done` holds what came of the others, by their keys."""

    def __init__(self, refused: Mapping[str, Refused], done: Mapping[Any, Any]) -> None:
        super().__init__(refused)
        self.done = dict(done)


@value
class Spoken:
    """A connection, and the version of an API that is spoken on it.

    Metadata is spoken from version 4 on, because the cluster itself is found with that.
    """

    connection: Connection
    key: ApiKey
    version: int

    def needs(self, version: int, what: str) -> None:
        """UnsupportedByBroker if this version cannot say `what`."""
        if self.version < version:
            why = f"{what}: needs version {version}, the broker supports up to {self.version}"
            raise UnsupportedByBroker(self.key.name, self.connection.address, why)


class Call:
    """Made for one call of a user, in a running loop."""

    def __init__(self, cluster: Cluster, *, timeout_ms: float | None, retries: int) -> None:
        settings = cluster.settings
        self.cluster = cluster
        self.deadline = Deadline(settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)
        # Whether a request may have been carried out though its answer never came.
        self.lost = False
        self._retries = retries
        self._still_unknown = Deadline(UNKNOWN_MS_MAX)
        self._backoff = Backoff(
            first_ms=settings.retry_backoff_ms, max_ms=settings.retry_backoff_max_ms, rng=cluster.ports.rng
        )

    # Asking once

    @property
    def request_timeout_ms(self) -> int:
        """How long the broker may take for what a request asks of it; never nothing."""
        return max(1, int(min(self.cluster.settings.request_timeout_ms, self.deadline.remaining_ms)))

    async def connection(self, node: int | None = None) -> Connection:
        """To that broker, or to any. A broker that the cluster does not have is refused."""
        if node is None:
            return await self.cluster.any_connection()
        if node not in self.cluster.metadata.nodes:
            known = await self.cluster.refresh()
            if node not in known.nodes:
                brokers = ", ".join(map(str, sorted(known.nodes)))
                why = f"not in the cluster, which has brokers {brokers}"
                raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, about=f"broker {node}", message=why)
        return await self.cluster.connection(node)

    async def ask(
        self,
        key: ApiKey,
        make: Callable[[Spoken], object],
        node: int | None = None,
        *,
        newest: int | None = None,
    ) -> Any:
        """Send what `make` makes for the version that is spoken, once, and return the answer.

        With `newest` no later version is spoken, because later ones say it in another way.
        """
        connection = await self.connection(node)
        version = connection.version_of(key)
        spoken = Spoken(connection, key, version if newest is None else min(version, newest))
        request = make(spoken)
        try:
            # Not the rest of the call's time: an answer that is late for one call is no reason to close a
            # connection that others use.
            limit_ms = self.cluster.settings.request_timeout_ms
            return await connection.ask(request, timeout_ms=limit_ms, version=spoken.version)
        except (ConnectionLost, RequestTimedOut):
            self.lost = True
            raise

    # Asking until it is settled

    async def settle(
        self,
        what: str,
        wanted: Iterable[K],
        attempt: Callable[[list[K]], Awaitable[Mapping[K, Outcome[V]]]],
        *,
        awaits_unknown: bool = False,
    ) -> dict[K, Outcome[V]]:
        """What became of each thing, in the order of `wanted`. With `awaits_unknown`, what is not known is
        asked for again for a while: its leader may be the last to hear of it."""
        keys = pending = list(dict.fromkeys(wanted))
        found: dict[K, Outcome[V]] = {}
        tries = 0
        while pending:
            found.update(await self._attempted(pending, attempt))
            tries += 1
            for key in pending:
                # Whatever went wrong in an earlier try says more than that there is no time left.
                found.setdefault(key, RequestTimedOut(what, "the cluster", self.deadline.timeout_ms))
            pending = [key for key in pending if self._is_worth_asking_again(found[key], awaits_unknown)]
            if pending and not await self._wait(tries):
                for key in pending:
                    _note(found[key], f"{what}: gave up after {tries} attempts")
                break
        return {key: found[key] for key in keys}

    async def single(self, what: str, attempt: Callable[[], Awaitable[V]]) -> V:
        """The same for one thing without a name: its value, or the error is raised."""

        async def one(_: list[str]) -> Mapping[str, Outcome[V]]:
            return {what: await attempt()}

        return only(await self.settle(what, [what], one))

    async def _attempted(
        self, wanted: list[K], attempt: Callable[[list[K]], Awaitable[Mapping[K, Outcome[V]]]]
    ) -> dict[K, Outcome[V]]:
        """What became of them, or nothing if the time was over first."""
        try:
            async with asyncio.timeout_at(self.deadline.at):
                answered = await attempt(wanted)
        except TimeoutError:
            return {}
        except ClientError as error:
            if not is_retriable(error) and not isinstance(error, Refused):
                raise
            return dict.fromkeys(wanted, error)
        return {key: answered.get(key, _unanswered(key)) for key in wanted}

    def _is_worth_asking_again(self, outcome: object, awaits_unknown: bool) -> bool:
        if not isinstance(outcome, ClientError):
            return False
        if isinstance(outcome, Refused):
            if outcome.code is ErrorCode.BROKER_NOT_AVAILABLE:
                return not self._still_unknown.passed
            if outcome.code in _ANSWERS:
                return awaits_unknown and not self._still_unknown.passed
        return is_retriable(outcome)

    async def _wait(self, tries: int) -> bool:
        """Before the next try; False if there is no time for one, or no try left."""
        wait_ms = self._backoff.wait_ms(tries)
        if tries > self._retries or wait_ms >= self.deadline.remaining_ms:
            return False
        await asyncio.sleep(wait_ms / 1000)
        return True


# What comes of it


def judged(code: int, value: V, *, about: str, message: str | None = None) -> Outcome[V]:
    """The value, unless the code that came with it says no."""
    return value if code == ErrorCode.NONE else refused(code, about=about, message=message)


def check(code: int, *, about: str, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise refused(code, about=about, message=message)


def only(outcomes: Mapping[K, Outcome[V]]) -> V:
    """The one value, or its error is raised."""
    (outcome,) = outcomes.values()
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


def all_of(outcomes: Mapping[K, Outcome[V]]) -> dict[K, V]:
    """All values; PartlyRefused if something was refused."""
    done: dict[K, V] = {}
    errors: dict[str, Refused] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, Refused):
            errors[name_of(key)] = outcome
        elif isinstance(outcome, ClientError):
            # Nobody refused it: it is not known what became of it.
            raise outcome
        else:
            done[key] = outcome
    if errors:
        raise PartlyRefused(errors, done)
    return done


def name_of(key: Hashable) -> str:
    """How a thing is called in errors. Topics are named by text, or by their ids, which are bytes."""
    if isinstance(key, TopicPartition):
        return str(key)
    return format_uuid(key) if isinstance(key, bytes) else str(key)  # type: ignore[arg-type]


def _unanswered(key: Hashable) -> Refused:
    why = "missing in the broker's response"
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, about=name_of(key), message=why)


def _note(outcome: object, text: str) -> None:
    if isinstance(outcome, ClientError) and text not in getattr(outcome, "__notes__", ()):
        outcome.add_note(text)
