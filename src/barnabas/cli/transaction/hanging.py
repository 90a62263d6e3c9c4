"""`barnabas transactions find-hanging`: the search and its progress."""

import argparse
from typing import TYPE_CHECKING, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.progress import Progress
from barnabas.cli.tool import ToolFailed, note, print_json
from barnabas.cli.transaction import documents, tables
from barnabas.cli.transaction.actions import check_replica, now_ms
from barnabas.cli.transaction.failures import why

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.transactions import SearchProgress

MINUTE_MS: Final = 60_000
# Counts of each stage of the search.
_COUNTED: Final = {
    "describe topics": "topics",
    "describe producers": "partitions",
    "list transactions": "producers",
    "describe transactions": "transactions",
}


class Watch:
    """Receives the progress of a search: shows it at a terminal, and names the stage that failed."""

    def __init__(self, *, broker: int | None) -> None:
        self._broker = broker
        # Whether any partition was searched.
        self.searched = False
        self._at: SearchProgress | None = None
        self._shown: Progress | None = None

    def __call__(self, at: "SearchProgress") -> None:
        if self._at is None or self._at.stage != at.stage:
            counted = _COUNTED.get(at.stage)
            self._shown = None if counted is None else Progress(counted, at.total)
        self._at = at
        self.searched |= at.stage == "describe producers"
        if self._shown is not None:
            self._shown.update(at.done)

    def clear(self) -> None:
        if self._shown is not None:
            self._shown.clear()

    @property
    def doing(self) -> str:
        """The current stage, in the words of the error of Kafka's tool."""
        if self._at is None:
            return "find hanging transactions"
        total = self._at.total
        match self._at.stage.value:
            case "describe topics":
                return f"describe {total} topics"
            case "describe producers":
                where = "their leaders" if self._broker is None else f"broker {self._broker}"
                return f"describe producers for {total} partitions on {where}"
            case "list transactions":
                return f"list transactions for {total} producers"
            case "describe transactions":
                return f"describe {total} transactions"
            case stage:
                return stage


def check_find(options: argparse.Namespace) -> None:
    """Raise ToolFailed unless the options limit the search."""
    if options.topic is None and options.broker_id is None:
        raise ToolFailed(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the"
            " search"
        )
    if options.partition is not None and options.topic is None:
        raise ToolFailed("The --partition argument requires --topic to be provided")


async def find_hanging(admin: "Admin", options: argparse.Namespace) -> int:
    from barnabas.client.errors import ClientError

    topics = partitions = None
    if options.partition is not None:
        partitions = [TopicPartition(options.topic, options.partition)]
    elif options.topic is not None:
        topics = [options.topic]
    watch = Watch(broker=options.broker_id)
    try:
        if partitions is not None and options.broker_id is not None:
            await check_replica(admin, partitions[0], options.broker_id)
        found = await admin.find_hanging(
            topics,
            partitions=partitions,
            broker=options.broker_id,
            max_timeout_ms=options.max_transaction_timeout * MINUTE_MS,
            tell=watch,
        )
    except ClientError as error:
        raise ToolFailed(f"Failed to {watch.doing}: {why(error)}") from error
    finally:
        watch.clear()
    if not watch.searched:
        what = options.topic or "any topic"
        note(f"nothing was searched: broker {options.broker_id} has no replica of {what}")
    if options.json:
        print_json({"hanging": [documents.hanging(each, now_ms=now_ms()) for each in found]})
    else:
        print(tables.hanging(found, now_ms=now_ms()))
    return 0
