"""The world outside, as a node sees it. The simulator hands in another one."""

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
    """Files, time, chance, and where blocking work runs."""

    fs: FileSystem
    clock: Clock
    executor: Executor
    checksums: Checksums
    rng: Random
    # What to tell clients where a listener leaves its host open.
    hostname: str
    # How long the loop may stay awake when answers have gone out: nothing where somebody else needs it.
    awake_ns: int = 0
    # The memory that the process may use.
    memory_bytes: int = UNKNOWN_BYTES
    # The division of the process' descriptors; None if they are not divided.
    descriptors: DescriptorBudget | None = None
