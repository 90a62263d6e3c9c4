"""The clock and random number generator of a client, injected by simulations.

Sockets and timers come from the running event loop.
"""

from random import Random

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.values import value


@value(kw_only=True)
class ClientPorts:
    clock: Clock
    rng: Random


def system_ports() -> ClientPorts:
    """Return the system clock and a new random number generator."""
    return ClientPorts(clock=SystemClock(), rng=Random())
