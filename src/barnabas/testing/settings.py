"""The settings of a broker inside a test: Kafka's names in a mapping, or the same with underscores."""

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.settings import InvalidSetting

HOST: Final = "127.0.0.1"
NODE_ID: Final = "1"

# What is decided here, and how to have it otherwise.
DECIDED: Final = {
    "listeners": "it listens on 127.0.0.1; port= says where",
    "advertised.listeners": "it listens on 127.0.0.1, and that is what clients are told",
    "log.dirs": "directory= says where data is kept",
    "log.dir": "directory= says where data is kept",
    "metadata.log.dir": "directory= says where data is kept",
    "process.roles": "it is broker and controller",
    "controller.listener.names": "the controller's listener is chosen for it",
    "controller.quorum.voters": "it is the one voter",
    "controller.quorum.bootstrap.servers": "it is the one voter",
}


def given_settings(settings: Mapping[str, object] | None, named: Mapping[str, object]) -> dict[str, str]:
    """Both ways together, as text. InvalidSetting for what cannot be given, or was given twice."""
    given: dict[str, str] = {}
    dotted = {name.replace("_", "."): value for name, value in named.items()}
    for name, value in [*(settings or {}).items(), *dotted.items()]:
        text = as_text(value)
        if name in DECIDED:
            raise InvalidSetting(name, text, f"cannot be set here: {DECIDED[name]}")
        if name in given:
            raise InvalidSetting(name, text, f"was given twice, also as {given[name]}")
        given[name] = text
    return given


def as_text(value: object) -> str:
    """A value as it would stand in a properties file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(as_text(one) for one in value)
    return str(value)


def broker_properties(given: Mapping[str, str], *, port: int, directory: str) -> dict[str, str]:
    """All settings of a cluster of one."""
    node_id = given.get("node.id") or given.get("broker.id") or NODE_ID
    return {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@{HOST}:0",
        "log.dirs": directory,
        # Kafka's defaults are three, and there is one broker to have them; and fifty, and a test needs few.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        # A test waits for one or two members. Kafka would wait three seconds for more of them.
        "group.initial.rebalance.delay.ms": "0",
        # Asking the controller for leave to stop is for brokers whose partitions can be led by others. It
        # costs a tenth of a second, and a test suite stops many.
        "controlled.shutdown.enable": "false",
        **given,
    }
