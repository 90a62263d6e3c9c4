"""Parsers of listeners, voters and per-address limits.

Each function parses one setting alone; together.py checks combinations. Listener names are converted to upper
case, as in Kafka. Hosts are not resolved, because that would be IO.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from barnabas.base.settings import InvalidSetting
from barnabas.base.values import value

PLAINTEXT: Final = "PLAINTEXT"
PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_PORT_MAX: Final = 65535
_ID_MAX: Final = 2**31 - 1
_LISTENER: Final = re.compile(r"(?P<name>.*)://\[?(?P<host>[0-9a-zA-Z\-%._:]*?)\]?:(?P<port>-?[0-9]{1,10})")
_ADDRESS: Final = re.compile(r"\[?(?P<host>[0-9a-zA-Z\-%._:]+?)\]?:(?P<port>[0-9]{1,10})")
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]+")
_WHOLE: Final = re.compile(r"[0-9]{1,10}")


@value(kw_only=True)
class Endpoint:
    """One listener. An empty host means all addresses if bound, the machine's own name if advertised. Port 0
    means any free port if bound, the port that the listener got if advertised."""

    name: str
    host: str
    port: int
    protocol: str

    def reached_at(self, *, hostname: str, port: int) -> "Endpoint":
        """The same endpoint, with an unspecified host and port filled in."""
        return replace(self, host=self.host or hostname, port=self.port or port)


@value(kw_only=True)
class Voter:
    """One member of the quorum."""

    id: int
    host: str
    port: int


def parse_protocol_map(name: str, text: str) -> dict[str, str]:
    """Parse NAME:PROTOCOL,... into protocols by listener name. The last entry of a name counts."""
    found: dict[str, str] = {}
    for entry in _entries(text):
        listener, colon, protocol = (part.strip() for part in entry.rpartition(":"))
        if not colon or not listener or protocol.upper() not in PROTOCOLS:
            raise InvalidSetting(
                name,
                text,
                f"{entry!r} must be NAME:PROTOCOL, where PROTOCOL is one of {', '.join(PROTOCOLS)}",
            )
        found[listener.upper()] = protocol.upper()
    return found


def parse_listeners(
    name: str, entries: tuple[str, ...], protocols: Mapping[str, str], *, is_bound: bool
) -> tuple[Endpoint, ...]:
    """Parse NAME://host:port,... Bound ports must differ, but an IPv4 and an IPv6 address can share one."""
    text = ",".join(entries)
    found: dict[str, Endpoint] = {}
    for entry in entries:
        one = _parse_listener(name, text, entry, protocols)
        if one.name in found:
            raise InvalidSetting(
                name, text, f"duplicate listener {one.name}; every listener needs its own name"
            )
        found[one.name] = one
    endpoints = tuple(found.values())
    if is_bound:
        _check_ports(name, text, endpoints)
    return endpoints


def _parse_listener(name: str, text: str, entry: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _LISTENER.fullmatch(entry)
    if match is None or not match["name"].strip():
        raise InvalidSetting(name, text, f"{entry!r} must be NAME://host:port")
    listener, port = match["name"].strip().upper(), int(match["port"])
    if not 0 <= port <= _PORT_MAX:
        raise InvalidSetting(name, text, f"the port of {entry!r} must be between 0 and {_PORT_MAX}")
    protocol = protocols.get(listener)
    if protocol is None:
        known = ", ".join(protocols) or "no listener"
        raise InvalidSetting(
            name, text, f"listener {listener} is not in listener.security.protocol.map, which has {known}"
        )
    if protocol != PLAINTEXT:
        raise InvalidSetting(
            name, text, f"listener {listener} has protocol {protocol}; only {PLAINTEXT} is supported so far"
        )
    return Endpoint(name=listener, host=match["host"], port=port, protocol=protocol)


def _check_ports(name: str, text: str, endpoints: tuple[Endpoint, ...]) -> None:
    by_port: dict[int, list[Endpoint]] = {}
    for one in endpoints:
        by_port.setdefault(one.port, []).append(one)
    for port, sharing in by_port.items():
        if port == 0 or len(sharing) == 1:
            continue
        if sorted(_ip_version(one.host) for one in sharing) != [4, 6]:
            names = " and ".join(one.name for one in sharing)
            raise InvalidSetting(
                name,
                text,
                f"{names} have the same port {port}; only an IPv4 and an IPv6 address can share one",
            )


def _ip_version(host: str) -> int:
    """4 or 6; 0 for a host name."""
    # Imported here because few brokers have two listeners on one port: startup should not pay for it.
    from ipaddress import ip_address

    try:
        return ip_address(host).version
    except ValueError:
        return 0


def parse_voters(name: str, entries: tuple[str, ...]) -> tuple[Voter, ...]:
    """Parse id@host:port,... and sort by id."""
    text = ",".join(entries)
    found: dict[int, Voter] = {}
    for entry in entries:
        number, at, address = entry.partition("@")
        if not at or _WHOLE.fullmatch(number) is None or int(number) > _ID_MAX:
            raise InvalidSetting(name, text, f"{entry!r} must be id@host:port, where id is a number")
        host, port = _parse_address(name, text, address)
        if int(number) in found:
            raise InvalidSetting(name, text, f"duplicate voter {int(number)}")
        found[int(number)] = Voter(id=int(number), host=host, port=port)
    return tuple(found[number] for number in sorted(found))


def parse_servers(name: str, entries: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """host:port,..."""
    return tuple(_parse_address(name, ",".join(entries), entry) for entry in entries)


def _parse_address(name: str, text: str, address: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > _PORT_MAX:
        raise InvalidSetting(name, text, f"{address!r} must be host:port, where port is at most {_PORT_MAX}")
    return match["host"], int(match["port"])


def parse_overrides(name: str, text: str) -> dict[str, int]:
    """Parse address:number,... The address may contain colons."""
    found: dict[str, int] = {}
    for entry in _entries(text):
        address, _, number = (part.strip() for part in entry.rpartition(":"))
        if _HOST.fullmatch(address) is None or _WHOLE.fullmatch(number) is None or int(number) > _ID_MAX:
            raise InvalidSetting(name, text, f"{entry!r} must be address:number, where number is at least 0")
        found[address] = int(number)
    return found


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]
