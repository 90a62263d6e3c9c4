"""Settings common to all clients and those of Admin, with Kafka's names, and their parsing.

Producer and Consumer declare theirs in their packages, in dataclasses derived from ClientSettings. A Kafka
setting that is not supported is refused with the reason, never ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from barnabas.base.errors import BarnabasError
from barnabas.base.setting_rules import at_least, between, one_of
from barnabas.base.settings import InvalidSetting, SettingType, parse_settings, setting, settings_of

INT, LONG, STRING, LIST, BOOLEAN = (
    SettingType.INT,
    SettingType.LONG,
    SettingType.STRING,
    SettingType.LIST,
    SettingType.BOOLEAN,
)

_INT_MAX: Final = 2**31 - 1
_NO_TLS: Final = "TLS and SASL are not supported yet"
_BYTES: Final = "keys and values are bytes: serialize before sending, deserialize after reading"
_NO_METRICS: Final = "metrics reporters are not supported"
_NO_INTERCEPTORS: Final = "interceptors are not supported"
# Unsupported names and name prefixes of Kafka's clients, with the reason.
REFUSED: Final = {
    "ssl.": _NO_TLS,
    "sasl.": _NO_TLS,
    "security.providers": _NO_TLS,
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "metric.reporters": _NO_METRICS,
    "metrics.": _NO_METRICS,
    "enable.metrics.push": _NO_METRICS,
    "auto.include.jmx.reporter": _NO_METRICS,
    "interceptor.classes": _NO_INTERCEPTORS,
    "config.providers": "config providers are not supported: pass the values themselves",
}

S = TypeVar("S", bound="ClientSettings")


class NoSettings(BarnabasError):
    """A required setting is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    # Further refused settings of a client class: a name, or a prefix that ends with a dot.
    REFUSED: ClassVar[Mapping[str, str]] = {}

    bootstrap_servers: tuple[str, ...] = setting(
        "bootstrap.servers", LIST, (), "bootstrap servers, HOST:PORT, separated by commas"
    )
    client_id: str = setting("client.id", STRING, "", "name of this client in the broker's logs")
    client_dns_lookup: str = setting(
        "client.dns.lookup",
        STRING,
        "use_all_dns_ips",
        "try every address of a host name",
        rule=one_of("use_all_dns_ips"),
    )
    security_protocol: str = setting(
        "security.protocol",
        STRING,
        "PLAINTEXT",
        "protocol of connections to brokers",
        rule=one_of("PLAINTEXT"),
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms", INT, 30_000, "timeout of one request", rule=at_least(1)
    )
    default_api_timeout_ms: int = setting(
        "default.api.timeout.ms", INT, 60_000, "timeout of a call, including its retries", rule=at_least(1)
    )
    retry_backoff_ms: int = setting(
        "retry.backoff.ms", LONG, 100, "wait after the first failure", rule=at_least(0)
    )
    retry_backoff_max_ms: int = setting(
        "retry.backoff.max.ms", LONG, 1000, "longest wait after repeated failures", rule=at_least(0)
    )
    reconnect_backoff_ms: int = setting(
        "reconnect.backoff.ms",
        LONG,
        50,
        "wait before connecting again to a broker that could not be reached",
        rule=at_least(0),
    )
    reconnect_backoff_max_ms: int = setting(
        "reconnect.backoff.max.ms",
        LONG,
        1000,
        "longest wait before connecting again, after repeated failures",
        rule=at_least(0),
    )
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        "timeout for setting up a connection, and for its handshake",
        rule=at_least(1),
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        540_000,
        "close a connection that is idle for this long",
        rule=at_least(1),
    )
    metadata_max_age_ms: int = setting(
        "metadata.max.age.ms", LONG, 300_000, "refresh metadata after this time", rule=at_least(1)
    )
    metadata_max_idle_ms: int = setting(
        "metadata.max.idle.ms",
        LONG,
        300_000,
        "stop refreshing the metadata of a topic that is unused for this long",
        rule=at_least(5000),
    )
    send_buffer_bytes: int = setting(
        "send.buffer.bytes", INT, 131_072, "SO_SNDBUF (-1: the system's default)", rule=at_least(-1)
    )
    receive_buffer_bytes: int = setting(
        "receive.buffer.bytes", INT, -1, "SO_RCVBUF (-1: the system's default)", rule=at_least(-1)
    )
    receive_message_max_bytes: int = setting(
        "receive.message.max.bytes",
        INT,
        100_000_000,
        "largest response that is read (a setting of librdkafka)",
        rule=at_least(1000),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings(ClientSettings):
    REFUSED: ClassVar[Mapping[str, str]] = {
        "bootstrap.controllers": "connecting to controllers is not supported: use bootstrap.servers",
        "metadata.recovery.strategy": "not configurable: this client always falls back to bootstrap.servers",
    }

    retries: int = setting(
        "retries",
        INT,
        _INT_MAX,
        "most retries of a call, within its timeout",
        rule=between(0, _INT_MAX),
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        300_000,
        "close a connection that is idle for this long",
        rule=between(1, 2**63 - 1),
    )


def parse_settings_of(cls: type[S], given: Mapping[str, object] | None, named: Mapping[str, object]) -> S:
    """Parse settings by Kafka's names, or keywords with underscores for dots; or InvalidSetting."""
    texts = {name: setting_text(name, value) for name, value in (given or {}).items() if value is not None}
    for keyword, value in named.items():
        name = keyword.replace("_", ".")
        if name in texts:
            raise InvalidSetting(name, str(value), "is given twice")
        if value is not None:
            texts[name] = setting_text(name, value)
    for name, text in texts.items():
        reason = _refusal(cls, name)
        if reason is not None:
            raise InvalidSetting(name, text, reason)
    settings = cls(**parse_settings(settings_of(cls), texts, {}))
    if not settings.bootstrap_servers:
        raise NoSettings("bootstrap.servers is missing: set it to HOST:PORT, separated by commas")
    for address in settings.bootstrap_servers:
        split_address(address)
    return settings


def _refusal(cls: type[ClientSettings], name: str) -> str | None:
    for known, reason in {**REFUSED, **cls.REFUSED}.items():
        if name == known or (known.endswith(".") and name.startswith(known)):
            return reason
    return None


def setting_text(name: str, value: object) -> str:
    """Return a value in Kafka's text form; InvalidSetting for other types."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list() | tuple():
            return ",".join(setting_text(name, each) for each in value)
        case _:
            raise InvalidSetting(name, repr(value), "must be a string, a number, a boolean or a list")


def split_address(address: str) -> tuple[str, int]:
    """Parse HOST:PORT, [IPv6]:PORT or PROTOCOL://HOST:PORT."""
    bare = address.rpartition("://")[2]
    host, colon, port = bare.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise InvalidSetting("bootstrap.servers", address, "must be HOST:PORT")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """Format HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
