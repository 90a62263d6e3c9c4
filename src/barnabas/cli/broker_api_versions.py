"""`barnabas broker-api-versions`: the API versions of each broker, and the one that our client would use.

Flags and output are those of kafka-broker-api-versions.sh. An unreachable broker is printed with its error,
as in Kafka's tool.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import add_client_options, admin_settings, print_json, reason, run_reporting, started

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.metadata import Node

__all__ = ["Parser", "arguments", "run"]

_BROKERS: Final = "broker"


def arguments(parser: Parser) -> None:
    parser.about = "print the API versions that each broker supports"
    add_client_options(parser, required=False)


def run(options: Options) -> int:
    options.parser.require(options, "bootstrap-server")
    return run_reporting(_main(options))


async def _main(options: Options) -> int:
    from barnabas.client.cluster import Cluster
    from barnabas.client.settings import AdminSettings, parse_settings_of

    settings = parse_settings_of(AdminSettings, admin_settings(options), {})
    async with started(Cluster(settings)) as cluster:
        offers = {node: await _offer(cluster, node.id) for _, node in sorted(cluster.metadata.nodes.items())}
    if options.json:
        print_json({"brokers": [_document(node, offer) for node, offer in offers.items()]})
    else:
        for node, offer in offers.items():
            print(f"{_shown(node)} -> {_text(offer)}")
    return 0


async def _offer(cluster: "Cluster", node: int) -> "Mapping[int, tuple[int, int]] | str":
    """Return the API versions of the broker, or the reason why it did not respond."""
    from barnabas.client.errors import ClientError

    try:
        return (await cluster.connection(node)).api_versions
    except ClientError as error:
        return reason(error)


def _shown(node: "Node") -> str:
    # The metadata lists unfenced brokers only.
    return f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'} isFenced: false)"


def _text(offer: "Mapping[int, tuple[int, int]] | str") -> str:
    if isinstance(offer, str):
        return f"ERROR: {offer}"
    rows = ",\n\t".join(_row(key, offer.get(key)) for key in sorted({*offer, *_client_apis()}))
    return f"(\n\t{rows}\n)"


def _client_apis() -> list[int]:
    """Return the keys of all APIs for clients, including those that this broker lacks."""
    from barnabas.protocol.api_keys import ApiKey
    from barnabas.protocol.apis import api

    return [int(key) for key in ApiKey if _BROKERS in api(key).listeners]


def _row(key: int, theirs: tuple[int, int] | None) -> str:
    name = _name(key)
    shown = f"{name or 'UNKNOWN'}({key}): "
    if theirs is None:
        return f"{shown}UNSUPPORTED"
    first, last = theirs
    shown += str(first) if first == last else f"{first} to {last}"
    return f"{shown} [{_usable(key, theirs)}]" if name is not None else shown


def _usable(key: int, theirs: tuple[int, int]) -> str:
    from barnabas.protocol.api_keys import ApiKey
    from barnabas.protocol.apis import api

    ours = api(ApiKey(key)).versions
    first, last = theirs
    if ours.last < first:
        return "unusable: node too new"
    if last < ours.first:
        return "unusable: node too old"
    return f"usable: {min(ours.last, last)}"


def _name(key: int) -> str | None:
    """Return Kafka's name of the API; None for an API that is newer than our list."""
    from barnabas.protocol.api_keys import ApiKey

    try:
        words = ApiKey(key).name.split("_")
    except ValueError:
        return None
    return "".join(word.capitalize() for word in words)


def _document(node: "Node", offer: "Mapping[int, tuple[int, int]] | str") -> dict[str, Any]:
    found: dict[str, Any] = {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
    if isinstance(offer, str):
        return {**found, "error": offer}
    apis = [
        {"key": key, "name": _name(key), "minVersion": first, "maxVersion": last}
        for key, (first, last) in sorted(offer.items())
    ]
    return {**found, "apis": apis}
