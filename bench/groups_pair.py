"""Both brokers for bench/groups.py: the same settings, and directories on the same disk."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker_pair import JAVA_OPTIONS, Pair
from support.kafka.broker import KafkaBroker
from support.kafka.tools import KafkaTools
from support.process.our_broker import OurBroker

ROUNDS = 5
SESSION_MS_MAX = 1_800_000
# An idle member is to stay while memory is measured. Nothing is compacted away while loading is measured.
SETTINGS: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.max.session.timeout.ms": SESSION_MS_MAX,
    "group.consumer.session.timeout.ms": SESSION_MS_MAX,
    "group.consumer.assignment.interval.ms": 0,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 50,
    "offsets.topic.segment.bytes": 1_000_000_000,
    "log.segment.delete.delay.ms": 0,
}


@dataclass(frozen=True, slots=True)
class Scene:
    """What a question is given. Each makes the brokers that it needs, below `directory`."""

    tools: KafkaTools
    directory: Path
    quick: bool

    @property
    def rounds(self) -> int:
        return 1 if self.quick else ROUNDS

    def sized(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def pair(self, name: str, **more: object) -> Pair:
        """Both, formatted and not started. Settings have underscores for dots."""
        chosen = {**SETTINGS, **{setting.replace("_", "."): value for setting, value in more.items()}}
        root = self.directory / name
        for side in ("ours", "theirs"):
            (root / side).mkdir(parents=True)
        theirs = KafkaBroker(self.tools, root / "theirs", settings=chosen, java_options=JAVA_OPTIONS)
        theirs.format()
        return Pair(OurBroker(root / "ours", settings=chosen), theirs, self.tools)

    @contextmanager
    def running(self, name: str, **more: object) -> Iterator[Pair]:
        pair = self.pair(name, **more)
        try:
            pair.ours.start()
            pair.theirs.start()
            yield pair
            pair.ours.stop()
            pair.theirs.stop()
        finally:
            # Nothing is left running, whatever went wrong.
            pair.ours.kill()
            pair.theirs.kill()


def note(what: str) -> None:
    print(f"  {what}", file=sys.stderr, flush=True)
