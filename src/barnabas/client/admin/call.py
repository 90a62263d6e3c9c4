"""One call of the admin client: connections, retries, and the outcome of each item.

A call handles items with keys: topics, partitions, resources. An attempt requests some of them and returns a
value or an error for each. retry_items() repeats attempts until no item is worth a retry or the timeout is
over. An error of one item does not affect the others.
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

# How long to retry an unknown topic, partition or broker: some brokers learn of a new one slightly later.
# Kafka's client retries until its timeout.
UNKNOWN_MS_MAX: Final = 5_000
# Retriable in Kafka, but here they are the result of the request.
_FINAL_RESULTS: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    )
)

Outcome: TypeAlias = V | ClientError
TopicPartitionLike: TypeAlias = TopicPartition | tuple[str, int]


class PartlyRefused(SomeRefused):
    """Some of the items were rejected. `done` holds the results of the others, by key."""

    def __init__(self, refused: Mapping[str, Refused], done: Mapping[Any, Any]) -> None:
        super().__init__(refused)
        self.done = dict(done)


@value
class NegotiatedApi:
    """A connection, and the version of an API that is used on it.

    The minimum version of Metadata is 4, because the client's own cluster lookup needs it.
    """

    connection: Connection
    key: ApiKey
    version: int

    def require(self, version: int, what: str) -> None:
        """Raise UnsupportedByBroker if `what` needs a newer version."""
        if self.version < version:
            why = f"{what}: needs version {version}, the broker supports up to {self.version}"
            raise UnsupportedByBroker(self.key.name, self.connection.address, why)


class Call:
    """Create one per user call, in a running loop."""

    def __init__(self, cluster: Cluster, *, timeout_ms: float | None, retries: int) -> None:
        settings = cluster.settings
        self.cluster = cluster
        self.deadline = Deadline(settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)
        # Whether a response was lost, so that its request may have been carried out.
        self.response_lost = False
        self._retries = retries
        self._unknown_deadline = Deadline(UNKNOWN_MS_MAX)
        self._backoff = Backoff(
            first_ms=settings.retry_backoff_ms, max_ms=settings.retry_backoff_max_ms, rng=cluster.ports.rng
        )

    # Asking once

    @property
    def request_timeout_ms(self) -> int:
        """The timeout_ms field of requests, at least 1."""
        return max(1, int(min(self.cluster.settings.request_timeout_ms, self.deadline.remaining_ms)))

    async def connection(self, node: int | None = None) -> Connection:
        """Return a connection to a broker (default: any). Refused if the cluster has no such broker."""
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
        make: Callable[[NegotiatedApi], object],
        node: int | None = None,
        *,
        newest: int | None = None,
    ) -> Any:
        """Send the request that `make` builds for the negotiated version, once, and return the response.

        `newest` limits the version, because later ones have another format.
        """
        connection = await self.connection(node)
        version = connection.version_of(key)
        api = NegotiatedApi(connection, key, version if newest is None else min(version, newest))
        request = make(api)
        try:
            # Not the remaining time of the call: a timeout closes the connection, which other calls share.
            limit_ms = self.cluster.settings.request_timeout_ms
            return await connection.ask(request, timeout_ms=limit_ms, version=api.version)
        except (ConnectionLost, RequestTimedOut):
            self.response_lost = True
            raise

    # Asking until it is settled

    async def retry_items(
        self,
        what: str,
        wanted: Iterable[K],
        attempt: Callable[[list[K]], Awaitable[Mapping[K, Outcome[V]]]],
        *,
        retries_unknown: bool = False,
    ) -> dict[K, Outcome[V]]:
        """Return the outcome of each item, in the order of `wanted`. With `retries_unknown`, retry unknown
        items for a while: their leader may be the last to learn of them."""
        keys = pending = list(dict.fromkeys(wanted))
        found: dict[K, Outcome[V]] = {}
        tries = 0
        while pending:
            found.update(await self._run_attempt(pending, attempt))
            tries += 1
            for key in pending:
                # An error of an earlier attempt is more useful than the timeout.
                found.setdefault(key, RequestTimedOut(what, "the cluster", self.deadline.timeout_ms))
            pending = [key for key in pending if self._should_retry(found[key], retries_unknown)]
            if pending and not await self._wait(tries):
                for key in pending:
                    _note(found[key], f"{what}: gave up after {tries} attempts")
                break
        return {key: found[key] for key in keys}

    async def retry_single(self, what: str, attempt: Callable[[], Awaitable[V]]) -> V:
        """Like retry_items(), for one item without a key: return its value or raise its error."""

        async def one(_: list[str]) -> Mapping[str, Outcome[V]]:
            return {what: await attempt()}

        return only(await self.retry_items(what, [what], one))

    async def ask_brokers(
        self, what: str, ask: Callable[[int], Awaitable[V]], brokers: Iterable[int] | None = None
    ) -> dict[int, Outcome[V]]:
        """Ask each broker by id (default: all). An error of one is its outcome."""

        async def one(broker: int) -> Outcome[V]:
            try:
                return await ask(broker)
            except ClientError as error:
                return error

        async def attempt(pending: list[int]) -> dict[int, Outcome[V]]:
            return dict(zip(pending, await asyncio.gather(*map(one, pending)), strict=True))

        if brokers is None:
            brokers = sorted((await self.retry_single("the brokers", self.cluster.refresh)).nodes)
        return await self.retry_items(what, brokers, attempt)

    async def _run_attempt(
        self, wanted: list[K], attempt: Callable[[list[K]], Awaitable[Mapping[K, Outcome[V]]]]
    ) -> dict[K, Outcome[V]]:
        """Run one attempt and return the outcomes; {} after the timeout."""
        try:
            async with asyncio.timeout_at(self.deadline.at):
                answered = await attempt(wanted)
        except TimeoutError:
            return {}
        except ClientError as error:
            if not is_retriable(error) and not isinstance(error, Refused):
                raise
            return dict.fromkeys(wanted, error)
        return {key: answered.get(key, _missing_in_response(key)) for key in wanted}

    def _should_retry(self, outcome: object, retries_unknown: bool) -> bool:
        if not isinstance(outcome, ClientError):
            return False
        if isinstance(outcome, Refused):
            if outcome.code is ErrorCode.BROKER_NOT_AVAILABLE:
                return not self._unknown_deadline.passed
            if outcome.code in _FINAL_RESULTS:
                return retries_unknown and not self._unknown_deadline.passed
        return is_retriable(outcome)

    async def _wait(self, tries: int) -> bool:
        """Back off before the next attempt; False if no time or no retry is left."""
        wait_ms = self._backoff.wait_ms(tries)
        if tries > self._retries or wait_ms >= self.deadline.remaining_ms:
            return False
        await asyncio.sleep(wait_ms / 1000)
        return True


# Outcomes


def outcome_of(code: int, value: V, *, about: str, message: str | None = None) -> Outcome[V]:
    """Return the value, or the error for a code other than NONE."""
    return value if code == ErrorCode.NONE else refused(code, about=about, message=message)


def check(code: int, *, about: str, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise refused(code, about=about, message=message)


def only(outcomes: Mapping[K, Outcome[V]]) -> V:
    """Return the only value, or raise its error."""
    (outcome,) = outcomes.values()
    if isinstance(outcome, ClientError):
        raise outcome
    return outcome


def all_of(outcomes: Mapping[K, Outcome[V]]) -> dict[K, V]:
    """Return all values; raise PartlyRefused if any item was rejected."""
    done: dict[K, V] = {}
    errors: dict[str, Refused] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, Refused):
            errors[name_of(key)] = outcome
        elif isinstance(outcome, ClientError):
            # Not a rejection: the outcome is unknown.
            raise outcome
        else:
            done[key] = outcome
    if errors:
        raise PartlyRefused(errors, done)
    return done


def all_of_group(group: str, outcomes: Mapping[K, Outcome[V]]) -> dict[K, V]:
    """Return all values. Raise an error of the whole group once instead of per item."""
    for outcome in outcomes.values():
        if isinstance(outcome, Refused) and outcome.about == f"group {group}":
            raise outcome
    return all_of(outcomes)


def name_of(key: Hashable) -> str:
    """Return the name of an item for errors. Topics are given by name or by id (bytes)."""
    if isinstance(key, TopicPartition):
        return str(key)
    return format_uuid(key) if isinstance(key, bytes) else str(key)  # type: ignore[arg-type]


def _missing_in_response(key: Hashable) -> Refused:
    why = "missing in the broker's response"
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, about=name_of(key), message=why)


def _note(outcome: object, text: str) -> None:
    if isinstance(outcome, ClientError) and text not in getattr(outcome, "__notes__", ()):
        outcome.add_note(text)
