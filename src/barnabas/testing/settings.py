"""The settings of a broker inside a test, and what to start.

Settings are given as a mapping with Kafka's names, or as keywords with underscores. Plans are passed from the
user's thread to the broker's.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.settings import InvalidSetting
from barnabas.base.values import value

HOST: Final = "127.0.0.1"
NODE_ID: Final = "1"

# Settings that the test kit computes, and what to use instead.
DECIDED: Final = {
    "listeners": "the broker listens on 127.0.0.1; port= sets the port",
    "advertised.listeners": "the broker listens on 127.0.0.1 and advertises that address",
    "log.dirs": "use directory=",
    "log.dir": "use directory=",
    "metadata.log.dir": "use directory=",
    "process.roles": "the node is broker and controller",
    "controller.listener.names": "the controller's listener is fixed",
    "controller.quorum.voters": "the node is the only voter",
    "controller.quorum.bootstrap.servers": "the node is the only voter",
}


def given_settings(settings: Mapping[str, object] | None, named: Mapping[str, object]) -> dict[str, str]:
    """Merge both forms, as text. InvalidSetting if a setting cannot be given, or is given twice."""
    given: dict[str, str] = {}
    dotted = {name.replace("_", "."): given_value for name, given_value in named.items()}
    for name, given_value in [*(settings or {}).items(), *dotted.items()]:
        text = as_text(given_value)
        if name in DECIDED:
            raise InvalidSetting(name, text, f"cannot be set here: {DECIDED[name]}")
        if name in given:
            raise InvalidSetting(name, text, f"is given twice, also as {given[name]}")
        given[name] = text
    return given


def as_text(value: object) -> str:
    """Format a value as in a properties file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(as_text(one) for one in value)
    return str(value)


def broker_properties(given: Mapping[str, str], *, port: int, directory: str) -> dict[str, str]:
    """Return all settings of a cluster of one node."""
    node_id = given.get("node.id") or given.get("broker.id") or NODE_ID
    return {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@{HOST}:0",
        "log.dirs": directory,
        # Kafka's default factor of 3 needs three brokers, and a test needs fewer than 50 partitions.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        # Kafka waits 3 s for more members of a new group; a test has one or two.
        "group.initial.rebalance.delay.ms": "0",
        # A controlled shutdown moves leadership to other brokers; here there are none. It takes 100 ms, and a
        # test suite stops many brokers.
        "controlled.shutdown.enable": "false",
        **given,
    }


@value
class TopicPlan:
    """A topic to create. `partitions` defaults to num.partitions."""

    name: str
    partitions: int | None
    settings: Mapping[str, str]


@value
class Plan:
    """A broker to start. Port 0 means any free port."""

    settings: Mapping[str, str]
    directory: str
    is_temporary: bool
    port: int
    topics: tuple[TopicPlan, ...]
