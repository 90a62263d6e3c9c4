"""Why a partition does not do what was asked. The server's table gives each its wire code."""

from barnabas.base.errors import BarnabasError


class PartitionError(BarnabasError):
    """Something about who leads a partition, and since when."""


class UnknownPartition(PartitionError):
    """This broker has no such partition, and the cluster may have none."""


class UnknownTopicId(PartitionError):
    """No topic has this id, or has it any more."""


class InconsistentTopicId(PartitionError):
    """The topic that was meant is gone, and another one has its name."""


class NoTransactionalId(PartitionError):
    """What belongs to a transaction came from a producer that does not say which."""


class NotForClients(PartitionError):
    """What only a broker may write to came from a client."""


class NotLeader(PartitionError):
    """Another broker leads it, or none does."""

    def __init__(self, name: str, *, leader: int, leader_epoch: int) -> None:
        super().__init__(f"this broker does not lead {name}; {leader} does, in epoch {leader_epoch}")
        self.leader = leader
        self.leader_epoch = leader_epoch


class FencedLeaderEpoch(PartitionError):
    """The sender has an older leader in mind."""

    def __init__(self, name: str, *, given: int, current: int) -> None:
        super().__init__(f"leader epoch {given} of {name} is over, {current} is current")


class UnknownLeaderEpoch(PartitionError):
    """The sender knows of a later leader than we do."""

    def __init__(self, name: str, *, given: int, current: int) -> None:
        super().__init__(f"leader epoch {given} of {name} is not known here, {current} is current")


class NotEnoughReplicas(PartitionError):
    """Fewer replicas are in sync than the topic asks for before it takes what is to be safe."""

    def __init__(self, name: str, *, isr: int, needed: int) -> None:
        super().__init__(f"{name} has {isr} replicas in sync, and min.insync.replicas is {needed}")
