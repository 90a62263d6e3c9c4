"""A node's interfaces to the outside world. The simulator provides its own."""

from random import Random

from barnabas.base.checksum import Checksums
from barnabas.base.clock import Clock
from barnabas.base.executor import Executor
from barnabas.base.memory import UNKNOWN_BYTES
from barnabas.base.values import value
from barnabas.server.descriptors import DescriptorBudget
from barnabas.storage.files import FileSystem


@value(kw_only=True)
class Ports:
    """Files, time, randomness, and the executor of blocking work."""

    fs: FileSystem
    clock: Clock
    executor: Executor
    checksums: Checksums
    rng: Random
    # Advertised to clients for listeners without a host.
    hostname: str
    # How long the loop may poll after responses have been sent (BusyPoll); 0 if others need the CPU.
    busy_poll_ns: int = 0
    # The memory that the process may use.
    memory_bytes: int = UNKNOWN_BYTES
    # The division of the process' descriptors; None if they are not divided.
    descriptors: DescriptorBudget | None = None
