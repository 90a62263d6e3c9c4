"""Refusals of a group."""

from barnabas.coordinators.decision.outcome import Refused


class GroupError(Refused):
    """A refused request: Kafka's error code and a message."""
