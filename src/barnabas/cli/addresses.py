"""Addresses of this machine: whether listeners can have theirs, and what to tell clients of it."""

import errno
import socket
from collections.abc import Iterable
from contextlib import suppress

from barnabas.base.errors import BarnabasError
from barnabas.server.settings.endpoints import Endpoint

ALL_IPV4 = "0.0.0.0"
ALL_IPV6 = "::"
# Nothing is sent there: it only asks the routing table which of our addresses others see. (RFC 5737)
_ELSEWHERE = ("192.0.2.1", 9)


class CannotListen(BarnabasError):
    """An address that a listener cannot have, and why."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(f"cannot listen on {shown(host, port)}: {why}")


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host or '*'}:{port}"


def check_free(endpoints: Iterable[Endpoint]) -> None:
    """CannotListen if one of them cannot be bound right now.

    It is asked before a log directory is touched. Who takes the port in the meantime is noticed when it is
    bound for good.
    """
    for endpoint in endpoints:
        check_address(endpoint.host, endpoint.port)


def check_address(host: str, port: int) -> None:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            _bind(family, kind, protocol, address)
    except OSError as error:
        raise CannotListen(host, port, why(error)) from None


def _bind(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> None:
    try:
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            # The machine has no such addresses, and the listener will do without them.
            return
        raise
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)


def why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the address is in use; stop the program that listens on it, or use another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "this user has no permission for that port; use one above 1023"
    return error.strerror or str(error)


def own_name() -> str:
    """A name or an address of this machine that others can be expected to reach it by."""
    for name in (socket.getfqdn(), socket.gethostname()):
        if name and not name.startswith("localhost") and _resolves(name):
            return name
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(_ELSEWHERE)
        address: str = sock.getsockname()[0]
        return address
    return "localhost"


def _resolves(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
