"""Checks of settings that depend on one another: node id, roles, listeners, quorum and limits."""

from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.setting_rules import Value
from barnabas.base.settings import InvalidSetting
from barnabas.base.values import value
from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.endpoints import (
    PLAINTEXT,
    PROTOCOLS,
    Endpoint,
    Voter,
    parse_listeners,
    parse_protocol_map,
    parse_servers,
    parse_voters,
)
from barnabas.server.settings.group_bounds import check_broker_bounds

# Parsed values by setting name. Any: the declaration determines the type.
Values = Mapping[str, Any]

_PROTOCOL_MAP: Final = "listener.security.protocol.map"
_CONTROLLERS: Final = "controller.listener.names"
_VOTERS: Final = "controller.quorum.voters"
_SERVERS: Final = "controller.quorum.bootstrap.servers"
_PROTOCOLS_OF_GROUPS: Final = "group.coordinator.rebalance.protocols"
_ANY_ADDRESS: Final = "0.0.0.0"
_CLEANER_BYTES_PER_THREAD: Final = 1 << 20
# Kafka does not start if the first of a pair exceeds the second.
_NOT_ABOVE: Final = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
)


def node_id(given: Mapping[str, str], values: Values) -> int:
    """Return node.id, which may be given as broker.id, and check that all required settings are set."""
    if "node.id" not in given and "broker.id" in given:
        values = {**values, "node.id": BROKER["node.id"].parse(given["broker.id"])}
    for one in BROKER.values():
        if one.required and values[one.name] is None:
            raise InvalidSetting(one.name, "", "must be set: it has no default")
    number: int = values["node.id"]
    if "broker.id" in given and values["broker.id"] != number:
        raise InvalidSetting("broker.id", given["broker.id"], f"must equal node.id={number}")
    return number


def check_roles(values: Values) -> None:
    """Checked first: a node with one role also has other listeners, and their error would be misleading."""
    roles: tuple[str, ...] = values["process.roles"]
    if set(roles) != {"broker", "controller"}:
        raise InvalidSetting(
            "process.roles",
            ",".join(roles),
            "must be broker,controller: a node with one role is not built yet",
        )


@value(kw_only=True)
class Listeners:
    """The node's bound and advertised listeners, for brokers and for controllers."""

    brokers: tuple[Endpoint, ...]
    controllers: tuple[Endpoint, ...]
    advertised_brokers: tuple[Endpoint, ...]
    advertised_controllers: tuple[Endpoint, ...]
    inter_broker: str

    @classmethod
    def of(cls, given: Mapping[str, str], values: Values) -> "Listeners":
        controller_names: tuple[str, ...] = values[_CONTROLLERS]
        protocols = _protocols(given, values)
        bound = parse_listeners("listeners", values["listeners"], protocols, is_bound=True)
        advertised = bound
        if values["advertised.listeners"] is not None:
            advertised = parse_listeners(
                "advertised.listeners", values["advertised.listeners"], protocols, is_bound=False
            )
        _check_controllers(controller_names, bound)
        controllers = tuple(one for one in bound if one.name in controller_names)
        brokers = tuple(one for one in advertised if one.name not in controller_names)
        _check_brokers(brokers, bound)
        return cls(
            brokers=tuple(one for one in bound if one.name not in controller_names),
            controllers=controllers,
            advertised_brokers=brokers,
            advertised_controllers=_advertised_controllers(controllers, advertised),
            inter_broker=_inter_broker(given, values, protocols, brokers),
        )


def _protocols(given: Mapping[str, str], values: Values) -> dict[str, str]:
    protocols = parse_protocol_map(_PROTOCOL_MAP, values[_PROTOCOL_MAP])
    if _PROTOCOL_MAP not in given:
        # Unmapped controller listeners default to PLAINTEXT unless some listener is named after another
        # protocol. (KIP-801)
        names: tuple[str, ...] = values[_CONTROLLERS]
        used = {entry.partition("://")[0].upper() for entry in values["listeners"]}
        if not (used | set(names)) & {one for one in PROTOCOLS if one != PLAINTEXT}:
            protocols |= dict.fromkeys(names, PLAINTEXT)
    return protocols


def _check_controllers(names: tuple[str, ...], bound: tuple[Endpoint, ...]) -> None:
    listening = [one.name for one in bound]
    for name in names:
        if name not in listening:
            raise InvalidSetting(
                _CONTROLLERS, ",".join(names), f"{name} must be one of the listeners: {', '.join(listening)}"
            )


def _check_brokers(brokers: tuple[Endpoint, ...], bound: tuple[Endpoint, ...]) -> None:
    shown = ",".join(f"{one.name}://{one.host}:{one.port}" for one in brokers)
    if not brokers:
        raise InvalidSetting(
            "advertised.listeners",
            shown,
            f"must have a listener for clients; all listeners are in {_CONTROLLERS}",
        )
    listening = [one.name for one in bound]
    for one in brokers:
        if one.name not in listening:
            raise InvalidSetting(
                "advertised.listeners",
                shown,
                f"{one.name} must be one of the listeners: {', '.join(listening)}",
            )
        if one.host == _ANY_ADDRESS:
            raise InvalidSetting(
                "advertised.listeners",
                shown,
                f"clients cannot connect to {_ANY_ADDRESS}; set an address that they can reach",
            )


def _advertised_controllers(
    controllers: tuple[Endpoint, ...], advertised: tuple[Endpoint, ...]
) -> tuple[Endpoint, ...]:
    by_name = {one.name: one for one in advertised}
    return tuple(by_name.get(one.name, one) for one in controllers)


def _inter_broker(
    given: Mapping[str, str], values: Values, protocols: Mapping[str, str], brokers: tuple[Endpoint, ...]
) -> str:
    named, protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    if named in given and protocol in given:
        raise InvalidSetting(protocol, given[protocol], f"only one of {named} and {protocol} can be set")
    asked = named if named in given else protocol
    listener: str = values[asked].upper()
    if listener not in [one.name for one in brokers]:
        names = ", ".join(one.name for one in brokers)
        raise InvalidSetting(
            asked,
            values[asked],
            f"must name one of the advertised broker listeners: {names}; {named} selects one",
        )
    return listener


def voters_of(values: Values, node: Value) -> tuple[Voter, ...]:
    """The configured voters or, with bootstrap servers only, this node at that address."""
    servers = parse_servers(_SERVERS, values[_SERVERS])
    voters = parse_voters(_VOTERS, values[_VOTERS])
    shown = ",".join(values[_VOTERS])
    if not voters and not servers:
        raise InvalidSetting(
            _VOTERS,
            shown,
            f"must name this node, as {node}@host:port, unless {_SERVERS} is set",
        )
    if voters and node not in [one.id for one in voters]:
        raise InvalidSetting(_VOTERS, shown, f"must include this controller, node.id={node}")
    if len(voters) > 1:
        raise InvalidSetting(
            _VOTERS, shown, "must be this node alone: a quorum of several controllers is not built yet"
        )
    if len(servers) > 1:
        raise InvalidSetting(
            _SERVERS,
            ",".join(values[_SERVERS]),
            "must be this node alone: a quorum of several controllers is not built yet",
        )
    return voters or (Voter(id=int(str(node)), host=servers[0][0], port=servers[0][1]),)


def check_values(given: Mapping[str, str], values: Values) -> None:
    """Check limits that depend on one another."""
    check_broker_bounds(values)
    _check_protocols(values)
    for lower, upper in _NOT_ABOVE:
        if values[lower] > values[upper]:
            raise InvalidSetting(upper, str(values[upper]), f"must be at least {lower}={values[lower]}")
    threads, memory = values["log.cleaner.threads"], values["log.cleaner.dedupe.buffer.size"]
    if memory // threads <= _CLEANER_BYTES_PER_THREAD:
        raise InvalidSetting(
            "log.cleaner.dedupe.buffer.size",
            str(memory),
            f"must be more than {_CLEANER_BYTES_PER_THREAD} for each of log.cleaner.threads={threads}",
        )
    queued, largest = values["queued.max.request.bytes"], values["socket.request.max.bytes"]
    if 0 < queued < largest:
        raise InvalidSetting(
            "queued.max.request.bytes",
            str(queued),
            f"must be at least socket.request.max.bytes={largest}, or -1",
        )
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        raise InvalidSetting(
            "max.connections.per.ip",
            "0",
            "must be at least 1, unless max.connections.per.ip.overrides is set",
        )
    idle, delay = values["connections.max.idle.ms"], values["connection.failed.authentication.delay.ms"]
    if 0 <= idle <= delay:
        raise InvalidSetting(
            "connections.max.idle.ms",
            str(idle),
            f"must be negative or more than connection.failed.authentication.delay.ms={delay}",
        )


def _check_protocols(values: Values) -> None:
    protocols: tuple[str, ...] = values[_PROTOCOLS_OF_GROUPS]
    if "classic" not in protocols:
        raise InvalidSetting(
            _PROTOCOLS_OF_GROUPS, ",".join(protocols), "must include classic, which cannot be disabled"
        )
    if "share" in protocols:
        raise InvalidSetting(
            _PROTOCOLS_OF_GROUPS,
            ",".join(protocols),
            "must not include share: share groups are not built yet",
        )
