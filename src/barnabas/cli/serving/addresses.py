"""Addresses of this machine: can a listener bind one, and under which name do clients reach it?"""

import errno
import socket
from collections.abc import Iterable
from contextlib import suppress

from barnabas.base.errors import BarnabasError
from barnabas.server.settings.endpoints import Endpoint

ALL_IPV4 = "0.0.0.0"
ALL_IPV6 = "::"
# A connected UDP socket sends nothing; its local address is the one that routing chooses. (RFC 5737)
_PROBE_ADDRESS = ("192.0.2.1", 9)


class CannotListen(BarnabasError):
    """A listener cannot bind an address."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(f"cannot listen on {shown(host, port)}: {why}")


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host or '*'}:{port}"


def check_free(endpoints: Iterable[Endpoint]) -> None:
    """Raise CannotListen if an endpoint cannot be bound right now.

    Called before any log directory is touched. A port that another program takes after this check fails
    when the listener binds it.
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
            # The machine does not support this address family; the listener skips it too.
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
    """Return a name or an address under which other machines can probably reach this one."""
    for name in (socket.getfqdn(), socket.gethostname()):
        if name and not name.startswith("localhost") and _resolves(name):
            return name
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(_PROBE_ADDRESS)
        address: str = sock.getsockname()[0]
        return address
    return "localhost"


def _resolves(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True
