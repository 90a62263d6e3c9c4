"""A shard of groups with its log in memory: what the shell does, without a loop, and with every kind of end.

Whatever the core decides is written as batches, read by a follower that knows nothing but the log, and
applied. The process may be killed, a write may fail, the log may be compacted: then the shard is loaded from
what is in it. Clients are in group_model_clients.py, producers that commit for them in
group_model_transactions.py, what must hold in group_model_checks.py.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, NamedTuple

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import EndMarker, InTransaction, Now, Outcome, ReplyTo
from barnabas.coordinators.group.context import ShardContext
from barnabas.coordinators.group.settings import GroupSettings
from barnabas.coordinators.group.shard import GroupShard
from barnabas.coordinators.runtime.writing import NextBatch, batches, marker_batch, stamped_batch
from barnabas.metadata.image import EMPTY_IMAGE, PartitionImage, TopicImage
from barnabas.protocol.error_codes import ErrorCode
from barnabas.records.header import Codec
from support.group.model_log import BATCH_BYTES_MAX, compacted, last_values

START_MS = 1_700_000_000_000


class Gone(NamedTuple):
    """What is said to somebody whose coordinator is not there any more."""

    error_code: int = ErrorCode.NOT_COORDINATOR


class NotTaken(NamedTuple):
    """What is said to a producer whose batch or marker the log refuses, and to nobody else."""

    error_code: int = ErrorCode.INVALID_PRODUCER_EPOCH


class Asked(ReplyTo):
    """A request that was sent. It is answered once, or its connection breaks."""

    __slots__ = ("_then", "answer", "what")

    def __init__(self, what: str, then: Callable[["Asked"], None] | None) -> None:
        self.what = what
        self.answer: Any = None
        self._then = then

    @property
    def waits(self) -> bool:
        return self.answer is None

    def give(self, answer: object) -> None:
        assert self.waits, f"{self.what} is answered twice: {self.answer}, then {answer}"
        self.answer = answer
        if self._then is not None:
            self._then(self)


class GroupWorld:
    """One shard, its log, the topics of the cluster, and the time."""

    def __init__(self, settings: GroupSettings, topics: Mapping[str, int]) -> None:
        self.settings = settings
        self.tick_ms = 0
        self.log: list[bytes] = []
        # The last epoch of each producer in it: of an older one nothing is taken.
        self.producer_epochs: dict[int, int] = {}
        # Requests that have no answer yet.
        self.waiting: list[Asked] = []
        # Told whenever something was written and everybody has been answered.
        self.watch: Callable[[], None] = lambda: None
        # The next write fails.
        self.refuses = False
        self.image = EMPTY_IMAGE
        self._lives = 0
        # What was read of which log, so that it is not read again as long as nothing has been written.
        self._read_again: list[GroupShard] = []
        self._read_log: list[bytes] | None = None
        self._read_with: tuple[object, object] | None = None
        self._topics_made = 0
        self._take_topics(topics)
        self._load()

    @property
    def now(self) -> Now:
        return Now(START_MS + self.tick_ms, self.tick_ms)

    # What comes of a request or of a timer

    def ask(
        self,
        what: str,
        call: Callable[[ReplyTo, Now], Outcome],
        then: Callable[[Asked], None] | None = None,
    ) -> Asked:
        asked = Asked(what, then)
        self.waiting.append(asked)
        self.do(lambda now: call(asked, now))
        return asked

    def do(self, act: Callable[[Now], Outcome]) -> None:
        """As ShardHost does it: write, apply, answer; or refuse the one who asked; or lose the shard."""
        now = self.now
        outcome = act(now)
        if outcome.records:
            if not self._takes(outcome.stamp):
                self._refuse(outcome)
                return
            if self.refuses:
                self._lose(outcome)
                return
            self._write(outcome, now)
        for to, answer in outcome.answers:
            assert isinstance(to, Asked)
            to.give(answer)
        self._forget_answered()
        if outcome.records:
            self.watch()

    def _takes(self, stamp: InTransaction | EndMarker | None) -> bool:
        return stamp is None or stamp.producer_epoch >= self.producer_epochs.get(stamp.producer_id, 0)

    def _write(self, outcome: Outcome, now: Now) -> None:
        written = _batches(outcome, now)
        assert len(written) == 1 or not outcome.answers, "what belongs together is in one batch"
        if outcome.stamp is not None:
            self.producer_epochs[outcome.stamp.producer_id] = outcome.stamp.producer_epoch
        self.log += written
        for record in outcome.records:
            self.shard.apply(record)
        for batch in written:
            self._follower.replay(batch)
        assert self._follower.durable() == self.shard.durable(), "the log does not tell what has happened"

    def pass_time(self, ms: int) -> None:
        """Whatever is due on the way happens at its time."""
        until_ms = self.tick_ms + ms
        while (next_ms := self.shard.context.timers.next_ms()) is not None and next_ms <= until_ms:
            self.tick_ms = max(self.tick_ms, next_ms)
            shard = self.shard
            for key in shard.context.timers.due(self.tick_ms):
                if self.shard is shard:
                    self.do(partial(shard.expire, key))
        self.tick_ms = until_ms

    # The cluster

    def has_topics(self, topics: Mapping[str, int]) -> set[str]:
        """The cluster's topics are these from now on; returns the names of those that were deleted.

        One that has fewer partitions than before was deleted and made again.
        """
        before = {name: len(topic.partitions) for name, topic in self.image.topics.items()}
        deleted = {name for name in before if name not in topics or topics[name] < before[name]}
        changed = {name for name in topics if topics[name] != before.get(name)}
        self._take_topics({name: count for name, count in topics.items() if name not in deleted})
        self._take_topics(topics)
        image = self.image
        self.do(lambda _: self.shard.take_image(image, changed=changed, deleted=deleted))
        return deleted

    def takes_settings(self, settings: GroupSettings) -> None:
        self.settings = self.shard.context.settings = settings

    def _take_topics(self, topics: Mapping[str, int]) -> None:
        made = {name: self._topic(name, count) for name, count in topics.items()}
        self.image = replace(
            EMPTY_IMAGE,
            offset=self.image.offset + 1,
            topics=made,
            topics_by_id={topic.id: topic for topic in made.values()},
        )

    def _topic(self, name: str, partitions: int) -> TopicImage:
        known = self.image.topics.get(name)
        if known is None:
            self._topics_made += 1
        topic_id = Uuid(b"%016d" % self._topics_made) if known is None else known.id
        one = PartitionImage(
            replicas=(1,), directories=(topic_id,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
        )
        return TopicImage(name, topic_id, (one,) * partitions)

    # How a shard ends

    def crash(self) -> None:
        """The process is killed: connections break, and memory is gone."""
        self._break_connections()
        self._load()

    def compact(self, *, keep_tombstones: bool) -> None:
        """The log has the last record of every key, in the order that it had."""
        self.log = compacted(self.log, keep_tombstones=keep_tombstones)

    def last_values(self) -> dict[bytes, bytes | None]:
        """By key what the log says last; None is a tombstone."""
        return last_values(self.log)

    def _refuse(self, outcome: Outcome) -> None:
        """What ShardHost does when the log does not take what a producer brings: nothing has changed."""
        for to, _ in outcome.answers:
            assert isinstance(to, Asked)
            to.give(NotTaken())
        self._forget_answered()
        assert self._follower.durable() == self.shard.durable(), "changed before it was written"

    def _lose(self, outcome: Outcome) -> None:
        """What ShardHost does when the log takes nothing: everybody is told, and it is loaded again."""
        self.refuses = False
        for to, answer in self.shard.abandon(ErrorCode.NOT_COORDINATOR).answers:
            assert isinstance(to, Asked)
            to.give(answer)
        for to, _ in outcome.answers:
            assert isinstance(to, Asked)
            if to.waits:
                to.give(Gone())
        self._forget_answered()
        assert not self.waiting, f"never told that the shard is gone: {[one.what for one in self.waiting]}"
        self._load()

    def _break_connections(self) -> None:
        broken, self.waiting = self.waiting, []
        for asked in broken:
            asked.give(Gone())

    def _forget_answered(self) -> None:
        self.waiting = [asked for asked in self.waiting if asked.waits]

    def _load(self) -> None:
        self._lives += 1
        self.shard = self.replayed(self.log, dice=self._lives)
        self._follower = self.replayed(self.log)
        self.do(self.shard.loaded)

    def read_again(self) -> list[GroupShard]:
        """Shards that have read this log, as it is and compacted. Nobody may change them."""
        facts = (self.settings, self.image)
        if self._read_log != self.log or self._read_with != facts:
            logs = [self.log, *(compacted(self.log, keep_tombstones=keep) for keep in (True, False))]
            self._read_again = [self.replayed(log) for log in logs]
            self._read_log, self._read_with = list(self.log), facts
        return self._read_again

    def replayed(self, log: Iterable[bytes], *, dice: int = 0) -> GroupShard:
        """A shard that has read this log and knows nothing else."""
        shard = GroupShard(ShardContext(self.settings, Random(dice), self.image))
        for batch in log:
            shard.replay(batch)
        return shard


def _batches(outcome: Outcome, now: Now) -> list[bytes]:
    """As ShardHost writes it."""
    if isinstance(outcome.stamp, EndMarker):
        return [marker_batch(outcome.stamp, now_ms=now.ms)]
    if isinstance(outcome.stamp, InTransaction):
        return [
            stamped_batch(
                outcome.records, outcome.stamp, NextBatch(0, 0, BATCH_BYTES_MAX, Codec.NONE), now.ms
            )
        ]
    return batches(outcome.records, NextBatch(0, 0, BATCH_BYTES_MAX, Codec.NONE), now.ms)
