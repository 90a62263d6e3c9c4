"""Why a group refuses something."""

from barnabas.coordinators.decision.errors import Refused


class GroupError(Refused):
    """The code that Kafka gives, and the facts."""
