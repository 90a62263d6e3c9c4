"""Who this node is, what it does in the cluster, and how it keeps in touch with the controller."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.setting_support import unsupported
from barnabas.server.settings.declare import (
    LONG_MAX,
    Change,
    ServerSetting,
    all_with,
    boolean,
    int32,
    int64,
    java_class,
    string,
    strings,
)
from barnabas.server.settings.rules import some_of

_IDENTITY: Final = (
    int32(
        "node.id", None, "The number of this node, which no other node has.", rule=at_least(0), required=True
    ),
    int32("broker.id", -1, "The older name of node.id; if both are set, they must be equal."),
    strings(
        "process.roles",
        None,
        "What this node is: a broker, a controller, or both. Only both together are built so far.",
        rule=some_of("broker", "controller"),
        required=True,
    ),
    string(
        "broker.rack",
        None,
        "In which rack or zone the broker stands, so that replicas are spread over racks.",
    ),
)

_REGISTRATION: Final = (
    int32(
        "broker.heartbeat.interval.ms",
        2000,
        "How often the broker tells the controller that it is alive.",
        rule=at_least(1),
    ),
    int32(
        "broker.session.timeout.ms",
        9000,
        "After how long without a heartbeat the controller takes a broker for dead.",
        rule=at_least(1),
    ),
    int32(
        "initial.broker.registration.timeout.ms",
        60000,
        "How long a starting broker tries to register before it gives up and stops.",
        rule=at_least(1),
    ),
    boolean(
        "controlled.shutdown.enable",
        True,
        "Whether a broker that stops hands its partitions over first.",
    ),
)

_THREADS: Final = (
    int32(
        "num.io.threads",
        8,
        "Threads for blocking work, beside background.threads: reads from the disk, flushes, compression.",
        rule=at_least(1),
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "background.threads",
        10,
        "Further threads of the same pool as num.io.threads, which it grows by.",
        rule=at_least(1),
        change=Change.CLUSTER_WIDE,
    ),
)

_JAVA: Final = all_with(
    unsupported("it names a Java class, which this broker cannot load"),
    java_class("alter.config.policy.class.name", None, "A class that is asked before settings are changed."),
    java_class("create.topic.policy.class.name", None, "A class that is asked before a topic is created."),
    strings(
        "config.providers",
        (),
        "Names of classes that fetch values of settings from elsewhere.",
        change=Change.CLUSTER_WIDE,
    ),
)

_INTERNAL: Final = (
    boolean(
        "unstable.api.versions.enable",
        False,
        "Whether unfinished API versions are spoken.",
        internal=True,
    ),
    *all_with(
        unsupported("this broker has finished features only"),
        boolean(
            "unstable.feature.versions.enable",
            False,
            "Whether unfinished features can be chosen.",
            internal=True,
        ),
    ),
    *all_with(
        unsupported("a start has no limit of its own"),
        int64(
            "server.max.startup.time.ms",
            LONG_MAX,
            "How long a start may take.",
            rule=at_least(0),
            internal=True,
        ),
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (*_IDENTITY, *_REGISTRATION, *_THREADS, *_JAVA, *_INTERNAL)
