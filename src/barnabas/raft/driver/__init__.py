"""The part of raft that does things: the log on its disk, timers, tasks, the listener."""

from barnabas.raft.driver.delivery import QuorumListener
from barnabas.raft.driver.quorum import Quorum

__all__ = ["Quorum", "QuorumListener"]
