"""Listeners, sockets, connections and requests."""

from typing import Final

from barnabas.base.setting_rules import at_least, one_of
from barnabas.base.settings import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    INT_MAX,
    UNTIL_RESTART,
    Change,
    ServerSetting,
    all_with,
    int32,
    int64,
    string,
    strings,
)
from barnabas.server.settings.rules import BUFFER_BYTES, SOME_DISTINCT

_LISTENERS: Final = (
    strings(
        "listeners",
        ("PLAINTEXT://:9092",),
        "Addresses to listen on, as NAME://host:port; an empty host means all addresses of the machine.",
        rule=SOME_DISTINCT,
        change=Change.PER_BROKER,
        fixed=UNTIL_RESTART,
    ),
    strings(
        "advertised.listeners",
        None,
        "Addresses that clients connect to, if they differ from listeners.",
        rule=SOME_DISTINCT,
    ),
    string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener, as NAME:PROTOCOL; only PLAINTEXT is supported so far.",
        change=Change.PER_BROKER,
        fixed=UNTIL_RESTART,
    ),
    strings(
        "controller.listener.names",
        None,
        "Names of the controller listeners; they are not advertised to clients.",
        rule=SOME_DISTINCT,
        required=True,
    ),
    string(
        "inter.broker.listener.name",
        None,
        "Listener for traffic between brokers; if not set, security.inter.broker.protocol names it.",
    ),
    string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Security protocol between brokers, if inter.broker.listener.name is not set.",
        rule=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    *all_with(
        unsupported("listeners cannot be started early yet"),
        strings(
            "early.start.listeners",
            None,
            "Listeners that accept requests before the broker has started completely.",
        ),
    ),
)

_SOCKETS: Final = (
    int32(
        "socket.send.buffer.bytes",
        102400,
        "Send buffer size (SO_SNDBUF) of client connections; -1 leaves it to the operating system.",
        rule=BUFFER_BYTES,
    ),
    int32(
        "socket.receive.buffer.bytes",
        102400,
        "Receive buffer size (SO_RCVBUF) of client connections; -1 leaves it to the operating system.",
        rule=BUFFER_BYTES,
    ),
    int32(
        "socket.request.max.bytes",
        104857600,
        "Maximum request size; a larger request closes its connection.",
        rule=at_least(1),
    ),
    int32(
        "socket.listen.backlog.size",
        50,
        "Maximum number of connections in the kernel's accept queue of a listener.",
        rule=at_least(1),
    ),
    *all_with(
        nothing_to_tune("a cluster has one broker, which does not connect to other nodes"),
        int64(
            "socket.connection.setup.timeout.ms",
            10000,
            "Timeout of the first attempt to connect to a node.",
        ),
        int64(
            "socket.connection.setup.timeout.max.ms",
            30000,
            "Maximum connection timeout; the timeout doubles with every failed attempt.",
        ),
    ),
)

_CONNECTIONS: Final = (
    int32(
        "max.connections",
        INT_MAX,
        "Maximum number of open connections of the broker or, with the prefix "
        "listener.name.NAME., of one listener. Further connections wait until another one closes.",
        rule=at_least(0),
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "max.connections.per.ip",
        INT_MAX,
        "Maximum number of connections from one address; further ones are closed at once. 0 is "
        "allowed only if max.connections.per.ip.overrides is set.",
        rule=at_least(0),
        change=Change.CLUSTER_WIDE,
    ),
    string(
        "max.connections.per.ip.overrides",
        "",
        "Connection limits of single addresses, as a comma-separated list of address:number.",
        change=Change.CLUSTER_WIDE,
    ),
    int64(
        "connections.max.idle.ms",
        600000,
        "Time without a request after which a connection is closed; negative means never.",
    ),
    int32(
        "max.connection.creation.rate",
        INT_MAX,
        "Maximum connections accepted per second by the broker or, with the prefix "
        "listener.name.NAME., by one listener, as an average over ten seconds. Further "
        "connections wait.",
        rule=at_least(0),
        change=Change.CLUSTER_WIDE,
    ),
)

_REQUESTS: Final = (
    *all_with(
        nothing_to_tune("there is no request queue; the requests in progress are bounded per connection"),
        int32(
            "queued.max.requests",
            500,
            "Maximum number of queued requests before the broker stops reading.",
            rule=at_least(1),
        ),
    ),
    int64(
        "queued.max.request.bytes",
        -1,
        "Maximum total size of the requests in memory before the broker stops reading large ones;"
        " -1 means an eighth of the memory.",
    ),
    int32(
        "request.timeout.ms",
        30000,
        "Time the broker waits for a response of another node.",
        rule=at_least(1),
    ),
    int32(
        "max.request.partition.size.limit",
        2000,
        "Maximum number of partitions in one response to DescribeTopicPartitions.",
        rule=at_least(1),
    ),
    *all_with(
        nothing_to_tune("a single event loop reads requests and writes responses"),
        int32(
            "num.network.threads",
            3,
            "Number of threads that read requests and write responses.",
            rule=at_least(1),
            change=Change.CLUSTER_WIDE,
        ),
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (*_LISTENERS, *_SOCKETS, *_CONNECTIONS, *_REQUESTS)
