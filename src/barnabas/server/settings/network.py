"""Listeners, sockets, connections, and the queue of requests."""

from typing import Final

from barnabas.base.setting_rules import at_least, one_of
from barnabas.base.setting_support import nothing_to_tune, unsupported
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
        "Where this node listens, as NAME://host:port; an empty host means every address of the machine.",
        rule=SOME_DISTINCT,
        change=Change.PER_BROKER,
        fixed=UNTIL_RESTART,
    ),
    strings(
        "advertised.listeners",
        None,
        "The addresses that clients are told to connect to, if they are not those of listeners.",
        rule=SOME_DISTINCT,
    ),
    string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Which protocol each listener speaks, as NAME:PROTOCOL; PLAINTEXT is the one there is so far.",
        change=Change.PER_BROKER,
        fixed=UNTIL_RESTART,
    ),
    strings(
        "controller.listener.names",
        None,
        "Names of the listeners on which controllers are reached; clients are not told of them.",
        rule=SOME_DISTINCT,
        required=True,
    ),
    string(
        "inter.broker.listener.name",
        None,
        "The listener for traffic between brokers; otherwise security.inter.broker.protocol names it.",
    ),
    string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "The security protocol between brokers, if inter.broker.listener.name does not name a listener.",
        rule=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    *all_with(
        unsupported("no listener can be opened before the others yet"),
        strings(
            "early.start.listeners", None, "Listeners that take requests before the rest of the broker is up."
        ),
    ),
)

_SOCKETS: Final = (
    int32(
        "socket.send.buffer.bytes",
        102400,
        "The kernel's send buffer of a client connection; -1 leaves it to the system.",
        rule=BUFFER_BYTES,
    ),
    int32(
        "socket.receive.buffer.bytes",
        102400,
        "The kernel's receive buffer of a client connection; -1 leaves it to the system.",
        rule=BUFFER_BYTES,
    ),
    int32(
        "socket.request.max.bytes",
        104857600,
        "The largest request that is read; a longer one closes its connection.",
        rule=at_least(1),
    ),
    int32(
        "socket.listen.backlog.size",
        50,
        "How many connections may wait in the kernel to be accepted.",
        rule=at_least(1),
    ),
    *all_with(
        nothing_to_tune("a cluster has one broker, which connects to no other node"),
        int64(
            "socket.connection.setup.timeout.ms",
            10000,
            "How long the first try to connect to a node may take.",
        ),
        int64(
            "socket.connection.setup.timeout.max.ms",
            30000,
            "How long a later try to connect may take, when every failure doubles the time.",
        ),
    ),
)

_CONNECTIONS: Final = (
    int32(
        "max.connections",
        INT_MAX,
        "How many connections the broker has open at once, over all its listeners; with listener.name.NAME. "
        "before it, over one. More wait until one is closed.",
        rule=at_least(0),
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "max.connections.per.ip",
        INT_MAX,
        "How many connections one address may have; more are closed at once. 0 only if "
        "max.connections.per.ip.overrides names some.",
        rule=at_least(0),
        change=Change.CLUSTER_WIDE,
    ),
    string(
        "max.connections.per.ip.overrides",
        "",
        "Other limits for some addresses, as address:number, separated by commas.",
        change=Change.CLUSTER_WIDE,
    ),
    int64(
        "connections.max.idle.ms",
        600000,
        "After how long without a request a connection is closed; a negative number means never.",
    ),
    int32(
        "max.connection.creation.rate",
        INT_MAX,
        "How many connections are accepted in a second, on average of ten seconds; with listener.name.NAME. "
        "before it, by one listener. More wait.",
        rule=at_least(0),
        change=Change.CLUSTER_WIDE,
    ),
)

_REQUESTS: Final = (
    *all_with(
        nothing_to_tune("there is no queue; what each connection has in progress is bounded instead"),
        int32(
            "queued.max.requests",
            500,
            "How many requests may wait to be begun before no more are read.",
            rule=at_least(1),
        ),
    ),
    int64(
        "queued.max.request.bytes",
        -1,
        "How many bytes of requests the broker holds for all clients together before it stops reading large "
        "ones; -1 is an eighth of the memory.",
    ),
    int32(
        "request.timeout.ms",
        30000,
        "How long the broker waits for an answer of another node.",
        rule=at_least(1),
    ),
    int32(
        "max.request.partition.size.limit",
        2000,
        "How many partitions one answer to DescribeTopicPartitions holds at most.",
        rule=at_least(1),
    ),
    *all_with(
        nothing_to_tune("one event loop reads requests and writes answers"),
        int32(
            "num.network.threads",
            3,
            "How many threads of Kafka's read requests and write answers.",
            rule=at_least(1),
            change=Change.CLUSTER_WIDE,
        ),
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (*_LISTENERS, *_SOCKETS, *_CONNECTIONS, *_REQUESTS)
