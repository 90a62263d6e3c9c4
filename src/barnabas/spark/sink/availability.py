"""Checks that brokers and topics exist before a worker first writes to them, within connectTimeout.

The producer itself would wait for its own timeouts. They suit a broker that restarts while a query runs, but
are too long for a wrong address or topic name.
"""

import time
from collections.abc import Mapping
from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.errors import BrokerUnavailable, ClientError, Refused, UnknownTopic
from barnabas.client.settings import join_address
from barnabas.spark.first_contact import NotReached, addresses_of, is_no_answer
from barnabas.spark.options.client_settings import CONNECT_TIMEOUT, PREFIX, admin_settings, connecting_in_time
from barnabas.spark.task_context import is_retry

# Timeout for further attempts of a task, which Spark starts right after one that has waited connectTimeout.
_RETRY_MS: Final = 2_000
_LOOK_AGAIN_S: Final = 0.5
_MAX_BLOCK: Final = "max.block.ms"
# Limit of clusters and topics that a worker remembers as available.
_AVAILABLE_MAX: Final = 10_000

_available: set[tuple[str, str]] = set()


class TopicNotThere(BarnabasError):
    """A topic to write to does not exist, and brokers did not create it."""

    def __init__(self, topic: str, servers: str, timeout_ms: int, option: str, error: Refused) -> None:
        super().__init__(
            f"topic {topic} does not exist, and the brokers at {servers} did not create it within "
            f"{timeout_ms / 1000:g} s ({option}): {error.code.name}"
        )


def check_brokers(client: Mapping[str, str], timeout_ms: int) -> None:
    """Raise NotReached if no broker responds to the first request of this process.

    Checks the advertised addresses, too, because records are sent to them and not to the bootstrap servers.
    """
    servers = client["bootstrap.servers"]
    if (servers, "") in _available:
        return
    limit_ms = _limit_ms(timeout_ms)
    until_s = time.monotonic() + limit_ms / 1000
    try:
        with Admin(connecting_in_time(admin_settings(client), limit_ms)) as admin:
            nodes = admin.describe_cluster().nodes.values()
            if not {join_address(node.host, node.port) for node in nodes} & addresses_of(servers):
                _check_any_node(admin, until_s)
    except ClientError as error:
        if is_no_answer(error):
            raise NotReached(servers, timeout_ms, error) from error
        raise
    _remember(servers, "")


def _check_any_node(admin: Admin, until_s: float) -> None:
    while True:
        found = admin.api_versions().values()
        failures = [(one.node.address, str(one.error)) for one in found if one.error is not None]
        if len(failures) < len(found):
            return
        if time.monotonic() + _LOOK_AGAIN_S > until_s:
            addresses, reasons = zip(*failures, strict=True)
            raise BrokerUnavailable(addresses, "; ".join(reasons))
        time.sleep(_LOOK_AGAIN_S)


def check_topic(client: Mapping[str, str], topic: str, timeout_ms: int) -> None:
    """Raise TopicNotThere if the topic does not exist when this process first writes to it.

    Brokers create the topic if auto.create.topics.enable is set.
    """
    servers = client["bootstrap.servers"]
    if (servers, topic) in _available:
        return
    block_ms = int(client.get(_MAX_BLOCK, timeout_ms))
    option = CONNECT_TIMEOUT if timeout_ms <= block_ms else PREFIX + _MAX_BLOCK
    timeout_ms = min(timeout_ms, block_ms)
    limit_ms = _limit_ms(timeout_ms)
    settings = connecting_in_time(admin_settings(client), max(1, limit_ms))
    try:
        # A separate producer: the one that writes would wait for max.block.ms, 1 minute by default.
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
    if len(_available) >= _AVAILABLE_MAX:
        _available.clear()
    _available.add((servers, topic))


def _limit_ms(timeout_ms: int) -> int:
    return min(timeout_ms, _RETRY_MS) if is_retry() else timeout_ms
