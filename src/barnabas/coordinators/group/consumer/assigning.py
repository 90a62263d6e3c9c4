"""Target assignments of large groups, computed off the event loop and applied by a later decision.

A heartbeat requests the assignment and continues with the current one. The runtime runs compute() in the
executor, one at a time, and delivers the result. (runtime/assigner.py)
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from barnabas.coordinators.decision.outcome import Now, Outcome
from barnabas.coordinators.group.assignors.by_name import UNIFORM
from barnabas.coordinators.group.assignors.spec import Assignment
from barnabas.coordinators.group.consumer import records
from barnabas.coordinators.group.consumer.group import ConsumerGroup
from barnabas.coordinators.group.consumer.target import Change, changed_targets, preferred_assignor
from barnabas.coordinators.group.context import ShardContext
from barnabas.metadata.image import MetadataImage

# Maximum of members times topics for an assignment within a request: about 20 ms.
ASSIGNED_AT_ONCE_MAX: Final = 10_000


class AssignmentJob(NamedTuple):
    """A snapshot of one group. compute() may run in any thread."""

    epoch: int
    group: ConsumerGroup
    change: Change
    image: MetadataImage
    assignors: tuple[str, ...]

    def compute(self) -> dict[str, Assignment]:
        return changed_targets(self.group, self.change, self.image, self.assignors)


class Assigning:
    """The groups of one shard that wait for an assignment. `on_wanted` is called for the first one."""

    def __init__(self, context: ShardContext) -> None:
        self._context = context
        self.wanted: Final[dict[str, None]] = {}
        self.on_wanted: Callable[[], None] | None = None

    def wants(self, group: ConsumerGroup, change: Change) -> bool:
        """Request an assignment off the loop if it takes long and an executor is available. True if
        requested."""
        if self.on_wanted is None or len(group.members) * len(change.subscriptions) <= ASSIGNED_AT_ONCE_MAX:
            return False
        members = len(group.members) + (change.after.id not in group.members)
        is_simple = preferred_assignor(group, change, self._context.settings.assignors) == UNIFORM
        if is_simple and change.subscriptions.homogeneous(members):
            return False
        is_first = not self.wanted
        self.wanted[group.id] = None
        if is_first:
            self.on_wanted()
        return True

    def begin(self, group_id: str) -> AssignmentJob | None:
        """The job for a group; None if no assignment is needed any more."""
        group = self._context.groups.get(group_id)
        if not isinstance(group, ConsumerGroup) or group.is_empty or group.assignment_epoch >= group.epoch:
            return None
        member = next(iter(group.members.values()))
        return AssignmentJob(
            group.epoch,
            group.as_of_now(),
            Change(member, member, group.subscriptions.copy()),
            self._context.image,
            self._context.settings.assignors,
        )

    def finish(self, job: AssignmentJob, targets: Mapping[str, Assignment], now: Now) -> Outcome:
        """Write the result for the members that still exist."""
        outcome = Outcome(is_tentative=True, is_divisible=True)
        group = self._context.groups.get(job.group.id)
        if not isinstance(group, ConsumerGroup) or group.assignment_epoch >= job.epoch:
            return outcome
        for member_id, target in targets.items():
            present = _present(group, job.group, member_id)
            if present is not None:
                outcome.write(records.target_record(group.id, present, target))
        outcome.write(records.target_epoch_record(group.id, job.epoch, now.ms))
        return outcome


def _present(group: ConsumerGroup, before: ConsumerGroup, member_id: str) -> str | None:
    """The member id, or that of the static member that has replaced it since."""
    if member_id in group.members:
        return member_id
    instance_id = before.members[member_id].instance_id
    return None if instance_id is None else group.static.get(instance_id)
