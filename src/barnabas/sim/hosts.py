"""Simulated hosts: names, addresses, ports, and the host of the running code.

A context variable has the host of the running code: every task and callback inherits it from its creator.
network.py does the sending.
"""

import errno
import os
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

# The host of all code that does not run in at().
DEFAULT_HOST: Final = "localhost"
ANY4: Final = "0.0.0.0"
ANY6: Final = "::"
LOOPBACK4: Final = "127.0.0.1"
LOOPBACK6: Final = "::1"
# Linux's range of ephemeral ports.
FREE_PORTS: Final = range(32768, 61000)
HOSTS_MAX: Final = 254

_HERE: ContextVar[str] = ContextVar("simulated host", default=DEFAULT_HOST)


class Address(NamedTuple):
    """An address of a simulated host. It includes the name, because all hosts have the same loopback."""

    host: str
    ip: str
    port: int

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET6 if ":" in self.ip else socket.AF_INET

    def name(self) -> tuple[Any, ...]:
        """The address in the form of a real socket."""
        return (self.ip, self.port, 0, 0) if ":" in self.ip else (self.ip, self.port)

    def __str__(self) -> str:
        return f"{self.host}[{self.ip}]:{self.port}"

    def wildcard(self) -> "Address":
        return self._replace(ip=ANY6 if ":" in self.ip else ANY4)


@dataclass(slots=True)
class _Host:
    name: str
    ip4: str
    ip6: str
    next_port: int = FREE_PORTS.start


class Hosts:
    """Every host of one network."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Host] = {}
        self.add(DEFAULT_HOST)

    def add(self, name: str) -> None:
        number = len(self._by_name) + 1
        if name in self._by_name or number > HOSTS_MAX:
            raise ValueError(f"cannot add host {name!r}, existing hosts are {sorted(self._by_name)}")
        self._by_name[name] = _Host(name, f"10.0.0.{number}", f"fd00::{number:x}")

    def names(self) -> list[str]:
        return list(self._by_name)

    def need(self, *names: str) -> None:
        """Raise ValueError if a host does not exist, because a fault between such hosts tests nothing."""
        for name in names:
            self._need(name)

    def here(self) -> str:
        """The name of the calling code's host."""
        return _HERE.get()

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Run the code inside, and every task that it starts, on this host."""
        token = _HERE.set(self._need(name).name)
        try:
            yield
        finally:
            _HERE.reset(token)

    def enter(self, name: str) -> None:
        """Run the rest of the current context on this host."""
        _HERE.set(self._need(name).name)

    def resolve(self, name: str, port: int, family: int = socket.AF_UNSPEC) -> list[Address]:
        """All addresses of a name or an address, from the calling host's view."""
        here = self.here()
        if name == DEFAULT_HOST:
            found = [Address(here, LOOPBACK4, port), Address(here, LOOPBACK6, port)]
        elif name in (LOOPBACK4, LOOPBACK6):
            found = [Address(here, name, port)]
        else:
            found = [
                Address(host.name, ip, port)
                for host in self._by_name.values()
                for ip in (host.ip4, host.ip6)
                if name in (host.name, ip)
            ]
        found = [address for address in found if family in (socket.AF_UNSPEC, address.family)]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {name}")
        return found

    def to_bind(self, name: str | None, port: int, family: int) -> list[Address]:
        """The addresses to bind for this name. Code on the default host may bind for any host."""
        here = self.here()
        if not name:
            found = [Address(here, ip, port) for ip in (ANY4, ANY6)]
            return [address for address in found if family in (socket.AF_UNSPEC, address.family)]
        if name in (ANY4, ANY6):
            return [Address(here, name, port)]
        found = self.resolve(name, port, family)
        if here != DEFAULT_HOST and any(address.host != here for address in found):
            raise OSError(errno.EADDRNOTAVAIL, f"{os.strerror(errno.EADDRNOTAVAIL)}: {name} is not {here}")
        return found

    def own_ip(self, name: str, towards: Address) -> str:
        """The local address of a connection to `towards`."""
        if towards.ip in (LOOPBACK4, LOOPBACK6):
            return towards.ip
        host = self._need(name)
        return host.ip6 if towards.family == socket.AF_INET6 else host.ip4

    def free_port(self, name: str, taken: Collection[int]) -> int:
        """The next free port of a host. A port is reused only after all others."""
        host = self._need(name)
        for _ in FREE_PORTS:
            port = host.next_port
            host.next_port = port + 1 if port + 1 < FREE_PORTS.stop else FREE_PORTS.start
            if port not in taken:
                return port
        raise OSError(errno.EADDRNOTAVAIL, f"{os.strerror(errno.EADDRNOTAVAIL)}: no free port on {name}")

    def _need(self, name: str) -> _Host:
        if name not in self._by_name:
            raise ValueError(f"unknown host {name!r}, existing hosts are {sorted(self._by_name)}")
        return self._by_name[name]
