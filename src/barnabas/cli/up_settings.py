"""The settings of the node that `barnabas up` starts."""

import argparse
from typing import Final

from barnabas.cli.addresses import ALL_IPV4, ALL_IPV6, own_name
from barnabas.server.cluster.formatting import read_identity
from barnabas.storage.disk import DiskFileSystem

NODE_ID: Final = 1
# Only this machine can reach the controller.
CONTROLLER_HOST: Final = "127.0.0.1"


def make_settings(options: argparse.Namespace, given: dict[str, str], directory: str) -> dict[str, str]:
    node_id = given.get("node.id") or given.get("broker.id") or str(_node_id(directory))
    host = options.host.strip("[]")
    settings = {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://{_address(host, options.port)},CONTROLLER://{CONTROLLER_HOST}:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{node_id}@{CONTROLLER_HOST}:0",
        "log.dirs": directory,
        # Kafka's defaults of 3 and 2 need more than this one broker.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    if host in (ALL_IPV4, ALL_IPV6):
        # Clients cannot connect to a wildcard address. Kafka requires advertised.listeners here.
        settings["advertised.listeners"] = f"PLAINTEXT://{_address(own_name(), options.port)}"
    return settings | given


def _node_id(directory: str) -> int:
    """Return the node id that the directory was formatted with, or the default."""
    identity = read_identity(DiskFileSystem(), [directory])
    return NODE_ID if identity is None else identity.node_id


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
