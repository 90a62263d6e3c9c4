"""The driver of the raft core: log, timers, tasks, listener."""

from barnabas.raft.driver.delivery import QuorumListener
from barnabas.raft.driver.quorum import Quorum

__all__ = ["Quorum", "QuorumListener"]
