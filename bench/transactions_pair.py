"""Both brokers for bench/transactions.py: the same settings, and directories on the same disk.

With `--twice` the first of the two is a Kafka as well: how far its ratios are from 1 is how far chance, and
the order of the turns, move the others.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import cast

from broker_pair import JAVA_OPTIONS, Pair
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools
from support.process.our_broker import OurBroker

ROUNDS = 5
# One node can have no more than one replica. All else is as it comes.
SETTINGS: Mapping[str, object] = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "offsets.topic.replication.factor": 1,
}


class Scene:
    """What a question is given: brokers below `directory`, those that most share or some of its own."""

    def __init__(self, tools: KafkaTools, directory: Path, *, quick: bool, twice: bool) -> None:
        self.tools = tools
        self.directory = directory
        self.quick = quick
        self.twice = twice
        self.rounds = 1 if quick else ROUNDS

    @cached_property
    def pair(self) -> Pair:
        """Those with the defaults, running from the first question that asks for them until close()."""
        pair = self._made("shared", SETTINGS)
        start(pair)
        return pair

    @contextmanager
    def running(self, name: str, more: Mapping[str, object]) -> Iterator[Pair]:
        """Others, with more settings. Those that are shared are ended before."""
        self.close()
        pair = self._made(name, {**SETTINGS, **more})
        start(pair)
        try:
            yield pair
        finally:
            end(pair)

    def close(self) -> None:
        """End those that are shared, if they were ever asked for."""
        if "pair" in self.__dict__:
            end(self.pair)
            del self.pair

    def _made(self, name: str, settings: Mapping[str, object]) -> Pair:
        """Both, formatted and not started."""
        root = self.directory / name
        for side in ("ours", "theirs"):
            (root / side).mkdir(parents=True)
        if self.twice:
            # Both have the same handles, and nothing here asks for more.
            ours = cast(OurBroker, self._kafka(root / "ours", settings))
        else:
            ours = OurBroker(root / "ours", settings=settings)
        return Pair(ours, self._kafka(root / "theirs", settings), self.tools)

    def _kafka(self, root: Path, settings: Mapping[str, object]) -> KafkaBroker:
        broker = KafkaBroker(self.tools, root, settings=settings, java_options=JAVA_OPTIONS)
        broker.format()
        return broker


def start(pair: Pair) -> None:
    try:
        pair.ours.start()
        pair.theirs.start()
    except BaseException:
        end(pair)
        raise


def end(pair: Pair) -> None:
    """Nothing is left running, whatever went wrong. What is on the disk is not needed any more."""
    pair.ours.kill()
    pair.theirs.kill()


def note(what: str) -> None:
    print(f"  {what}", file=sys.stderr, flush=True)
