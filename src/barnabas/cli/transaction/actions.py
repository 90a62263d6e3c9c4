"""The commands list, describe and describe-producers of `barnabas transactions`.

Each command is one function, which prints the result and returns the exit code. Aborting is in aborting.py,
the search for hanging transactions in hanging.py.
"""

import argparse
import time
from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition
from barnabas.cli.tool import ToolFailed, print_json, regex_error
from barnabas.cli.transaction import documents, tables
from barnabas.cli.transaction.failures import failing

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.errors import SomeRefused


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def list_transactions(admin: "Admin", options: argparse.Namespace) -> int:
    from barnabas.client.errors import SomeRefused

    pattern: str | None = options.transactional_id_pattern
    with failing("Failed to list transactions"):
        try:
            found = await admin.list_transactions(longer_than_ms=options.duration_filter, pattern=pattern)
        except SomeRefused as error:
            _check_pattern(error, pattern)
            raise
    if options.json:
        print_json({"transactions": [documents.listed(each) for each in found.values()]})
    else:
        print(tables.listing(found.values()))
    return 0


def _check_pattern(error: "SomeRefused", pattern: str | None) -> None:
    """Report what is wrong with the pattern; Kafka's tool only reports an unexpected error."""
    codes = {each.code.name for each in error.refused.values()}
    if pattern is not None and "INVALID_REGULAR_EXPRESSION" in codes:
        fault = regex_error(pattern) or "the broker rejects it"
        raise ToolFailed(
            f"Failed to list transactions: the regular expression `{pattern}` is invalid: {fault}"
        ) from error


async def describe(admin: "Admin", options: argparse.Namespace) -> int:
    name: str = options.transactional_id
    request = f"DescribeTransactions request for transactionalId `{name}`"
    said = {
        "TRANSACTIONAL_ID_NOT_FOUND": f"{request} failed because the ID could not be found",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": f"{request} failed due to authorization failure",
    }
    with failing(f"Failed to describe transaction state of transactional-id `{name}`", said):
        found = await admin.describe_transaction(name)
    if options.json:
        print_json(documents.described(found, now_ms=now_ms()))
    else:
        print(tables.description(found, now_ms=now_ms()))
    return 0


async def describe_producers(admin: "Admin", options: argparse.Namespace) -> int:
    tp, broker = TopicPartition(options.topic, options.partition), options.broker_id
    where = "leader" if broker is None else f"broker {broker}"
    with failing(f"Failed to describe producers for partition {tp} on {where}"):
        if broker is not None:
            await check_replica(admin, tp, broker)
        found = (await admin.describe_producers([tp], broker=broker))[tp]
    if options.json:
        active = [documents.producer(each) for each in found]
        print_json({"topic": tp.topic, "partition": tp.partition, "producers": active})
    else:
        print(tables.producers(found))
    return 0


async def check_replica(admin: "Admin", tp: TopicPartition, broker: int) -> None:
    """Raise Refused if the broker has no replica of the partition.

    The broker itself would return NOT_LEADER_OR_FOLLOWER, which the client retries until the timeout.
    """
    from barnabas.client.errors import Refused
    from barnabas.protocol.error_codes import ErrorCode

    topic = await admin.describe_topic(tp.topic)
    partition = next((each for each in topic.partitions if each.partition == tp.partition), None)
    if partition is not None and broker not in partition.replicas:
        brokers = ", ".join(map(str, partition.replicas))
        raise Refused(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            about=str(tp),
            message=f"Failed to describe active producers for partition {tp} on brokerId {broker}:"
            f" its replicas are on {brokers}",
        )
