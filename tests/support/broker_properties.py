"""The properties of a node that is broker and controller, for tests that change one or two of them."""

from collections.abc import Mapping


def combined(changes: Mapping[str, str | None] | None = None, /) -> dict[str, str]:
    """A valid node; `changes` replace settings, and None takes one away."""
    properties: dict[str, str | None] = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        **(changes or {}),
    }
    return {name: value for name, value in properties.items() if value is not None}
