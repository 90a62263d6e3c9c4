"""The node's identity, roles, registration with the controller, and threads."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.settings import unsupported
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
    int32("node.id", None, "Id of this node, unique in the cluster.", rule=at_least(0), required=True),
    int32("broker.id", -1, "Former name of node.id; if both are set, they must be equal."),
    strings(
        "process.roles",
        None,
        "Roles of this node: broker, controller, or both. Only both together are supported so far.",
        rule=some_of("broker", "controller"),
        required=True,
    ),
    string(
        "broker.rack",
        None,
        "Rack or availability zone of the broker; replicas are spread over racks.",
    ),
)

_REGISTRATION: Final = (
    int32(
        "broker.heartbeat.interval.ms",
        2000,
        "Interval between the broker's heartbeats to the controller.",
        rule=at_least(1),
    ),
    int32(
        "broker.session.timeout.ms",
        9000,
        "Time without a heartbeat after which the controller fences a broker.",
        rule=at_least(1),
    ),
    int32(
        "initial.broker.registration.timeout.ms",
        60000,
        "Time a starting broker tries to register before it gives up and stops.",
        rule=at_least(1),
    ),
    boolean(
        "controlled.shutdown.enable",
        True,
        "Move partition leadership to other brokers before the broker stops.",
    ),
)

_THREADS: Final = (
    int32(
        "num.io.threads",
        8,
        "Threads for blocking work, in addition to background.threads: disk reads, flushes, compression.",
        rule=at_least(1),
        change=Change.CLUSTER_WIDE,
    ),
    int32(
        "background.threads",
        10,
        "Additional threads of the pool that num.io.threads sizes.",
        rule=at_least(1),
        change=Change.CLUSTER_WIDE,
    ),
)

_JAVA: Final = all_with(
    unsupported("it names a Java class, which this broker cannot load"),
    java_class("alter.config.policy.class.name", None, "Class that validates changes of settings."),
    java_class("create.topic.policy.class.name", None, "Class that validates new topics."),
    strings(
        "config.providers",
        (),
        "Names of the providers that resolve setting values from external sources.",
        change=Change.CLUSTER_WIDE,
    ),
)

_INTERNAL: Final = (
    boolean(
        "unstable.api.versions.enable",
        False,
        "Enable unstable API versions.",
        internal=True,
    ),
    *all_with(
        unsupported("this broker has no unstable features"),
        boolean(
            "unstable.feature.versions.enable",
            False,
            "Enable unstable feature versions.",
            internal=True,
        ),
    ),
    *all_with(
        unsupported("the duration of a start is not limited"),
        int64(
            "server.max.startup.time.ms",
            LONG_MAX,
            "Maximum duration of a start.",
            rule=at_least(0),
            internal=True,
        ),
    ),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = (*_IDENTITY, *_REGISTRATION, *_THREADS, *_JAVA, *_INTERNAL)
