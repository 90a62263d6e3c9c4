"""A group under load: a topic, a producer that never rests, and members that come and go.

with group_run(broker, kind, directory) as run:
    first = run.start("first")
    run.settle()
    first.kill()
    run.settle()
At the end of the block the producer stops, whoever is left reads to the end and leaves, and all journals are
checked: see checker.py.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from barnabas.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from support.clients.stage import Broker, Stage
from support.group_runs.checker import Session, faults
from support.group_runs.journal import now_us
from support.group_runs.kinds import Kind
from support.group_runs.member_process import MemberProcess
from support.group_runs.orders import Orders
from support.group_runs.producer import NumberedProducer
from support.group_runs.tenures import moves
from support.wire.client import WireClient

PARTITIONS = 6
SETTLED_WITHIN_S = 40.0
LOOK_AGAIN_AFTER_S = 0.02
SESSION_MS = 3000
HEARTBEAT_MS = 300
# So long has nothing moved when a group is called quiet: each member has been heard, and heard the answer.
QUIET_US = 3 * HEARTBEAT_MS * 1000
# So that sessions may be short and a first member need not wait for others.
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
}
OWNERSHIP = ("assigned", "revoked", "lost")


class GroupRun:
    def __init__(self, stage: Stage, kind: Kind, directory: Path) -> None:
        self._stage = stage
        self.kind = kind
        self.broker = stage.broker
        self._directory = directory
        self.topic = stage.topic(partitions=PARTITIONS)
        self.members: list[MemberProcess] = []
        self._producer = NumberedProducer(stage.address, self.topic, PARTITIONS)

    def start(self, name: str, *, instance: str | None = None, kind: Kind | None = None) -> MemberProcess:
        """Have a member join, without waiting for it; of another kind, if one is given."""
        member = self.prepare(name, instance=instance, kind=kind)
        member.join()
        return member

    def prepare(self, name: str, *, instance: str | None = None, kind: Kind | None = None) -> MemberProcess:
        """A process that is ready to join. A name that was there before is told apart by a number."""
        chosen = kind or self.kind
        number = sum(member.name.partition("#")[0] == name for member in self.members) + 1
        orders = Orders(
            address=self._stage.address,
            topic=self.topic,
            group=self.topic,
            journal=str(self._directory / f"{self.topic}-{name}-{number}.journal"),
            protocol=chosen.protocol,
            assignor=chosen.assignor,
            instance=instance,
            session_ms=SESSION_MS,
            heartbeat_ms=HEARTBEAT_MS,
        )
        member = MemberProcess(f"{name}#{number}", chosen.command(), orders)
        self.members.append(member)
        self._wait(lambda: bool(member.last_us("ready")), f"{member.name} is not ready")
        return member

    @property
    def living(self) -> list[MemberProcess]:
        return [member for member in self.members if member.is_alive]

    def settle(self) -> None:
        """Wait until every partition has one living owner, every living member has some, and all of them
        have read since."""
        self._wait(lambda: self._is_shared() and self._all_read(), "the group is not settled")

    def settle_quietly(self) -> None:
        """Wait until, beside that, all have equally many and nothing has moved for a while."""
        self._wait(self._is_quiet, "the group does not come to rest")

    def settle_since(self, begun_us: int) -> None:
        """Wait until the group is settled, and every member has committed again since that time."""

        def is_so() -> bool:
            commits = [member.last_us("committed") for member in self.living]
            return min(commits) > begun_us and self._is_shared() and self._all_read()

        self._wait(is_so, "the group is not settled again")

    def _is_shared(self) -> bool:
        owned = [member.owned() for member in self.living]
        return all(owned) and sorted(where for each in owned for where in each) == list(range(PARTITIONS))

    def _all_read(self) -> bool:
        return all(member.last_us("read") > member.last_us(*OWNERSHIP) for member in self.living)

    def _is_quiet(self) -> bool:
        counts = [len(member.owned()) for member in self.living]
        last = max(member.last_us(*OWNERSHIP) for member in self.living)
        is_even = max(counts) - min(counts) <= 1
        return is_even and self._is_shared() and self._all_read() and now_us() - last > QUIET_US

    def moves_since(self, begun_us: int, *, of: MemberProcess) -> list[str]:
        """What was given to this member or taken from it."""
        return list(moves([of.life()], from_us=begun_us, to_us=now_us()))

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + SETTLED_WITHIN_S
        while not is_so():
            assert monotonic() < deadline, f"{what} within {SETTLED_WITHIN_S} s:\n{self.story()}"
            sleep(LOOK_AGAIN_AFTER_S)

    def begin(self) -> None:
        self._producer.start()

    def finish(self) -> None:
        """Stop the load, have everything read, let everybody leave, and check."""
        self._producer.stop()
        acknowledged = self._producer.acknowledged
        self._wait(lambda: self._committed() == acknowledged, "not everything is read and committed")
        # One after the other, so that each has somebody who takes its partitions over; but the last.
        for member in self.living:
            member.leave()
        self._check()

    def _check(self) -> None:
        lives = [member.life() for member in self.members]
        session = Session(timeout_us=SESSION_MS * 1000, heartbeat_us=HEARTBEAT_MS * 1000)
        found = faults(lives, acknowledged=self._producer.acknowledged, session=session)
        assert not found, "\n".join([*found, self.story()])
        assert self._committed() == self._producer.acknowledged

    def _committed(self) -> dict[int, int]:
        asked = OffsetFetchRequestTopic(name=self.topic, partition_indexes=list(range(PARTITIONS)))
        with WireClient(self._stage.address) as client:
            answer = client.ask(OffsetFetchRequest(group_id=self.topic, topics=[asked]), 7)
        return {
            one.partition_index: one.committed_offset for topic in answer.topics for one in topic.partitions
        }

    def story(self) -> str:
        """Who had what and when, for the one who has to find out why."""
        told = [
            (event.at_us, member.name, event)
            for member in self.members
            for event in member.life().events
            if event.word not in ("read", "committing", "committed")
        ]
        events = sorted(told, key=lambda one: one[0])
        if not events:
            return "\n".join(f"{member.name}: {member.complaints()}" for member in self.members)
        start = events[0][0]
        lines = [
            f"{(at - start) / 1e6:7.3f} s  {name}  {event.word} {list(event.partitions)} {event.text}"
            for at, name, event in events
        ]
        return "\n".join(lines)

    def give_up(self) -> None:
        """Whatever went wrong: nothing is left running."""
        for member in self.living:
            member.kill()
        self._producer.stop()


@contextmanager
def group_run(broker: Broker, kind: Kind, directory: Path) -> Iterator[GroupRun]:
    run = GroupRun(Stage(broker, f"group-{kind.name}"), kind, directory)
    run.begin()
    try:
        yield run
        run.finish()
    finally:
        run.give_up()
