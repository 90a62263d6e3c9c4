"""`barnabas cluster`: print the cluster id, list brokers, unregister a broker: kafka-cluster.sh.

Flags, output and exit codes are those of Kafka's tool. --bootstrap-controller is not supported: our client
connects to brokers only, which forward requests to the controller.
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.argument_parser import Parser
from barnabas.cli.option_parser import integer
from barnabas.cli.tool import ToolFailed, admin_settings, note, print_json, run_reporting, started

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.cluster import ClusterNode

_RACK_WIDTH: Final = 10
_DEPRECATED: Final = (
    "Option --config has been deprecated and will be removed in a future version."
    " Use --command-config instead."
)


def arguments(parser: Parser) -> None:
    # add_subparsers() gives subcommands the class of this parser.
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add(commands, "cluster-id", "print the cluster id")
    unregister = _add(commands, "unregister", "unregister a broker that will not return")
    unregister.add_argument("--id", "-i", type=integer, required=True, help="id of the broker")
    endpoints = _add(commands, "list-endpoints", "list the endpoints of the brokers")
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="include fenced brokers")


def _add(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--bootstrap-server", "-b", metavar="HOST:PORT,...", help="bootstrap servers")
    where.add_argument(
        "--bootstrap-controller", "-C", metavar="HOST:PORT,...", help="not supported: use --bootstrap-server"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--config", metavar="FILE", help="(DEPRECATED) --command-config")
    how.add_argument("--command-config", "-c", metavar="FILE", help="properties file with client settings")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON document")
    return parser


def run(options: argparse.Namespace) -> int:
    if options.config is not None:
        # Kafka prints the warning to stdout, but with --json stdout must hold one JSON document only.
        print(_DEPRECATED, file=sys.stderr if options.json else sys.stdout)
    return run_reporting(_main(options))


async def _main(options: argparse.Namespace) -> int:
    from barnabas.client.admin.admin import Admin

    async with started(Admin(_settings(options))) as admin:
        match options.command:
            case "cluster-id":
                await _cluster_id(admin, as_json=options.json)
            case "unregister":
                return await _unregister(admin, options.id, as_json=options.json)
            case command:
                assert command == "list-endpoints", command
                await _list_endpoints(admin, fenced=options.include_fenced_brokers, as_json=options.json)
    return 0


def _settings(options: argparse.Namespace) -> dict[str, object]:
    if options.bootstrap_controller is not None:
        raise ToolFailed(
            "--bootstrap-controller is not supported: this client connects to brokers, which forward requests"
            " to the controller; use --bootstrap-server"
        )
    options.command_config = options.command_config or options.config
    return admin_settings(options)


async def _cluster_id(admin: "Admin", *, as_json: bool) -> None:
    found = (await admin.describe_cluster()).cluster_id
    if as_json:
        print_json({"clusterId": found})
    elif found is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {found}")


async def _unregister(admin: "Admin", broker: int, *, as_json: bool) -> int:
    from barnabas.client.errors import UnsupportedByBroker

    try:
        await admin.unregister_broker(broker)
    except UnsupportedByBroker:
        # Kafka's tool exits with 0 here, too.
        line = "The target cluster does not support the broker unregistration API."
        note(line) if as_json else print(line)
        return 0
    if as_json:
        print_json({"unregistered": broker})
    else:
        print(f"Broker {broker} is no longer registered.")
    return 0


async def _list_endpoints(admin: "Admin", *, fenced: bool, as_json: bool) -> None:
    nodes = list((await admin.describe_cluster(fenced=fenced)).nodes.values())
    if as_json:
        print_json({"nodes": [_document(node) for node in nodes]})
        return
    rows = [(str(n.id), n.host, str(n.port), n.rack or "null", _state(n), "broker") for n in nodes]
    host_width = max((len(node.host) for node in nodes), default=0)
    rack_width = max((len(node.rack) for node in nodes if node.rack), default=_RACK_WIDTH)
    for node_id, host, port, rack, state, kind in [
        ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"),
        *rows,
    ]:
        print(f"{node_id:<10} {host:<{host_width}} {port:<10} {rack:<{rack_width}} {state:<10} {kind:<15}")


def _state(node: "ClusterNode") -> str:
    return "fenced" if node.fenced else "unfenced"


def _document(node: "ClusterNode") -> dict[str, Any]:
    return {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack, "state": _state(node)}
