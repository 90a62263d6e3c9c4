"""Whether brokers and topics are there, asked before a worker writes to them for the first time.

That takes no longer than connectTimeout. The producer that writes would wait for as long as its own timeouts
allow, which is right for a broker that is restarted while a query runs, and too long for a wrong address or a
wrong name.
"""

import time
from collections.abc import Mapping
from typing import Final

from pyspark import TaskContext

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.errors import BrokerUnavailable, ClientError, Refused, UnknownTopic
from barnabas.client.settings import join_address
from barnabas.spark.first_contact import NotReached, addresses_of, is_no_answer
from barnabas.spark.options.client_settings import PREFIX, admin_settings, connecting_in_time
from barnabas.spark.options.contact import CONNECT_TIMEOUT

# Another try of a task only looks once more: Spark begins it right after the one that has waited so long.
_AGAIN_MS: Final = 2_000
_LOOK_AGAIN_S: Final = 0.5
_MAX_BLOCK: Final = "max.block.ms"
# Clusters and topics that a worker remembers to have reached.
_REACHED_MAX: Final = 10_000

_reached: set[tuple[str, str]] = set()


class TopicNotThere(BarnabasError):
    """A topic to be written to is not there, and brokers do not make it."""

    def __init__(self, topic: str, servers: str, timeout_ms: int, option: str, error: Refused) -> None:
        super().__init__(
            f"topic {topic} does not exist, and the brokers at {servers} did not create it within "
            f"{timeout_ms / 1000:g} s ({option}): {error.code.name}"
        )


def reach(client: Mapping[str, str], timeout_ms: int) -> None:
    """NotReached if no broker answers when this process asks for the first time.

    Nor may only the bootstrap servers: records are sent to the addresses by which brokers call themselves.
    """
    servers = client["bootstrap.servers"]
    if (servers, "") in _reached:
        return
    limit_ms = _limit_ms(timeout_ms)
    until_s = time.monotonic() + limit_ms / 1000
    try:
        with Admin(connecting_in_time(admin_settings(client), limit_ms)) as admin:
            nodes = admin.describe_cluster().nodes.values()
            if not {join_address(node.host, node.port) for node in nodes} & addresses_of(servers):
                _reach_any_node(admin, until_s)
    except ClientError as error:
        if is_no_answer(error):
            raise NotReached(servers, timeout_ms, error) from error
        raise
    _remember(servers, "")


def _reach_any_node(admin: Admin, until_s: float) -> None:
    while True:
        found = admin.api_versions().values()
        failures = [(one.node.address, str(one.error)) for one in found if one.error is not None]
        if len(failures) < len(found):
            return
        if time.monotonic() + _LOOK_AGAIN_S > until_s:
            addresses, reasons = zip(*failures, strict=True)
            raise BrokerUnavailable(addresses, "; ".join(reasons))
        time.sleep(_LOOK_AGAIN_S)


def reach_topic(client: Mapping[str, str], topic: str, timeout_ms: int) -> None:
    """TopicNotThere if there is no such topic when this process writes to it for the first time.

    As always when something is written, brokers create it if they are set up to do so.
    """
    servers = client["bootstrap.servers"]
    if (servers, topic) in _reached:
        return
    block_ms = int(client.get(_MAX_BLOCK, timeout_ms))
    option = CONNECT_TIMEOUT if timeout_ms <= block_ms else PREFIX + _MAX_BLOCK
    timeout_ms = min(timeout_ms, block_ms)
    limit_ms = _limit_ms(timeout_ms)
    settings = connecting_in_time(admin_settings(client), max(1, limit_ms))
    try:
        # With the producer that writes it would take max.block.ms, 1 minute if nothing is said.
        with Producer(settings, max_block_ms=limit_ms) as producer:
            producer.partitions_for(topic)
    except UnknownTopic as error:
        raise TopicNotThere(topic, servers, timeout_ms, option, error) from error
    except ClientError as error:
        if is_no_answer(error):
            raise NotReached(servers, timeout_ms, error) from error
        raise
    _remember(servers, topic)


def _remember(servers: str, topic: str) -> None:
    if len(_reached) >= _REACHED_MAX:
        _reached.clear()
    _reached.add((servers, topic))


def _limit_ms(timeout_ms: int) -> int:
    context = TaskContext.get()
    is_again = context is not None and context.attemptNumber() > 0
    return min(timeout_ms, _AGAIN_MS) if is_again else timeout_ms
