"""What a client needs of the machine beside its sockets: a clock for timestamps, and dice.

Sockets and waiting are the running loop's. The simulated world hands in its own.
"""

from random import Random

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.values import value


@value(kw_only=True)
class ClientPorts:
    clock: Clock
    rng: Random


def system_ports() -> ClientPorts:
    """The machine's."""
    return ClientPorts(clock=SystemClock(), rng=Random())
