"""All listeners of a node: the limits that they share, and the addresses that they advertise."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from barnabas.protocol.messages.brokers import Listener as ListenerMessage
from barnabas.server.metrics.request_stats import RequestStats
from barnabas.server.network.admission import NO_LIMIT, Admitted, ConnectionLimits, DescriptorShare
from barnabas.server.network.listener import Listener
from barnabas.server.network.pool import ConnectionPool
from barnabas.server.network.request_bytes import RequestBytes, limit_of
from barnabas.server.network.response_bytes import ResponseBytes, response_limit_of
from barnabas.server.ports import Ports
from barnabas.server.requests.api import Context, Dispatcher
from barnabas.server.services import Services
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.dynamic import DynamicSettings
from barnabas.server.settings.endpoints import Endpoint


class Listeners:
    """bind() makes them by the settings; the broker starts and closes each."""

    def __init__(self, settings: DynamicSettings, ports: Ports, stats: RequestStats) -> None:
        self._settings = settings
        self._ports = ports
        self._stats = stats
        # Bound listeners only.
        self.all: Final[list[Listener]] = []
        self.response_bytes: Final = ResponseBytes(response_limit_of(ports.memory_bytes))

    async def bind(
        self, settings: BrokerSettings, services: Services, *, clients: Dispatcher, controllers: Dispatcher
    ) -> None:
        """Bind every listener of the settings. OSError if one cannot be bound."""
        self._settings.subscribe(self._change_limits)
        budget = self._ports.descriptors
        descriptors = DescriptorShare(NO_LIMIT if budget is None else budget.connections)
        # All client listeners share the connection limits; all listeners share the descriptors.
        of_clients, of_controllers = Admitted(descriptors), Admitted(descriptors)
        # As in Kafka, brokers with a listener of their own can connect however many clients there are.
        protected = settings.inter_broker_listener_name if len(settings.broker_listeners) > 1 else None
        request_bytes = RequestBytes(
            limit_of(
                settings.queued_max_request_bytes, settings.socket_request_max_bytes, self._ports.memory_bytes
            )
        )
        planned = [
            *((endpoint, clients, of_clients) for endpoint in settings.broker_listeners),
            *((endpoint, controllers, of_controllers) for endpoint in settings.controller_listeners),
        ]
        ports = [endpoint.port for endpoint, _, _ in planned if endpoint.port != 0]
        for endpoint, dispatcher, admitted in planned:
            pool = ConnectionPool(
                clock=self._ports.clock,
                limits=_limits(settings, endpoint.name),
                request_bytes_max=settings.socket_request_max_bytes,
                stats=self._stats,
                context=partial(_context, services, endpoint.name),
                admitted=admitted,
                is_protected=endpoint.name == protected,
                busy_poll_ns=self._ports.busy_poll_ns,
                long_requests=services.long_requests,
                request_bytes=request_bytes,
                response_bytes=self.response_bytes,
            )
            listener = Listener(
                endpoint,
                pool,
                dispatcher,
                settings.socket_listen_backlog_size,
                shares_port=ports.count(endpoint.port) > 1,
            )
            await listener.bind()
            self.all.append(listener)

    def _change_limits(self, settings: BrokerSettings, _changed: frozenset[str]) -> None:
        for listener in self.all:
            listener.pool.change_limits(_limits(settings, listener.endpoint.name))

    def advertised(self, endpoints: Iterable[Endpoint]) -> list[ListenerMessage]:
        """The advertised listeners, with open hosts and ports filled in."""
        ports = {listener.endpoint.name: listener.port for listener in self.all}
        reached = [one.reached_at(hostname=self._ports.hostname, port=ports[one.name]) for one in endpoints]
        return [
            ListenerMessage(name=one.name, host=one.host, port=one.port, security_protocol=0)
            for one in reached
        ]

    @property
    def addresses(self) -> list[str]:
        """The advertised host:port of every client listener."""
        advertised = self.advertised(self._settings.now.advertised_broker_listeners)
        return [f"{_bracketed(one.host)}:{one.port}" for one in advertised]


def _limits(settings: BrokerSettings, listener: str) -> ConnectionLimits:
    return ConnectionLimits(
        connections_max=settings.max_connections,
        listener_max=settings.listener_max_connections.get(listener, NO_LIMIT),
        rate_max=settings.max_connection_creation_rate,
        listener_rate_max=settings.listener_max_connection_creation_rate.get(listener, NO_LIMIT),
        per_host_max=settings.max_connections_per_ip,
        per_host_overrides=dict(settings.max_connections_per_ip_overrides),
        idle_ms=settings.connections_max_idle_ms,
        send_buffer_bytes=settings.socket_send_buffer_bytes,
        receive_buffer_bytes=settings.socket_receive_buffer_bytes,
    )


def _context(services: Services, listener: str, client: str) -> Context:
    return Context(services, listener=listener, client_address=client)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
