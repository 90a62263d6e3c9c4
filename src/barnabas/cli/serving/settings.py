"""The settings of a node: read from a server.properties file of Kafka, or made up by `barnabas up`."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas.base import properties
from barnabas.base.errors import BarnabasError, Malformed
from barnabas.base.settings import InvalidSetting
from barnabas.cli.serving.addresses import ALL_IPV4, ALL_IPV6, own_name
from barnabas.server.cluster.formatting import read_identity
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.disk import DiskFileSystem

# Settings that hold one or more directories. Relative ones are resolved against the working directory.
_DIRECTORIES: Final = ("log.dirs", "log.dir", "metadata.log.dir")
# The node of `barnabas up`. Only this machine can reach the controller.
NODE_ID: Final = 1
CONTROLLER_HOST: Final = "127.0.0.1"


class BadFile(BarnabasError):
    """A file cannot be read as settings."""


def read_settings(path: str, overrides: Mapping[str, str] | None = None) -> BrokerSettings:
    """Read the settings of the file and apply the overrides. BadFile or InvalidSetting if invalid."""
    given = {**_read(path), **(overrides or {})}
    return BrokerSettings.parse(with_absolute_directories(given))


def with_absolute_directories(given: Mapping[str, str]) -> dict[str, str]:
    found = dict(given)
    for name in _DIRECTORIES:
        if given.get(name, "").strip():
            paths = [os.path.abspath(one.strip()) if one.strip() else "" for one in given[name].split(",")]
            if "/" in paths:
                raise InvalidSetting(name, given[name], "must name directories other than /")
            found[name] = ",".join(paths)
    return found


def _read(path: str) -> dict[str, str]:
    try:
        return properties.parse(Path(path).read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from None
    except Malformed as error:
        raise BadFile(f"{path}: {error}") from None


def make_settings(options: argparse.Namespace, given: dict[str, str], directory: str) -> dict[str, str]:
    """Return the settings of the node that `barnabas up` starts; `given` overrides them."""
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
