"""Errors of partitions. The server's table maps them to wire codes."""

from barnabas.base.errors import BarnabasError


class PartitionError(BarnabasError):
    """The root of the errors of this package."""


class UnknownPartition(PartitionError):
    """This broker does not have the partition, and it may not exist at all."""


class UnknownTopicId(PartitionError):
    """No topic has this id now."""


class InconsistentTopicId(PartitionError):
    """The topic was deleted, and another topic has its name now."""


class NoTransactionalId(PartitionError):
    """A transactional batch was sent without a transactional id."""


class NotForClients(PartitionError):
    """A client wrote to an internal topic that only brokers may write to."""


class NotLeader(PartitionError):
    """Another broker leads the partition, or none does."""

    def __init__(self, name: str, *, leader: int, leader_epoch: int) -> None:
        super().__init__(
            f"this broker is not the leader of {name}; the leader is {leader} in epoch {leader_epoch}"
        )
        self.leader = leader
        self.leader_epoch = leader_epoch


class FencedLeaderEpoch(PartitionError):
    """The request has an older leader epoch than the partition."""

    def __init__(self, name: str, *, given: int, current: int) -> None:
        super().__init__(f"leader epoch {given} of {name} is fenced, the current epoch is {current}")


class UnknownLeaderEpoch(PartitionError):
    """The request has a newer leader epoch than this broker knows."""

    def __init__(self, name: str, *, given: int, current: int) -> None:
        super().__init__(f"leader epoch {given} of {name} is unknown, the current epoch is {current}")


class NotEnoughReplicas(PartitionError):
    """The partition has fewer in-sync replicas than min.insync.replicas requires for acks=all."""

    def __init__(self, name: str, *, isr: int, needed: int) -> None:
        super().__init__(f"{name} has {isr} in-sync replicas, but min.insync.replicas requires {needed}")
