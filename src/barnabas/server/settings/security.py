"""Authorisation, principals, and delegation tokens."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.setting_support import nothing_to_tune, unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    int32,
    int64,
    java_class,
    password,
    string,
)

_POSITIVE: Final = at_least(1)

SETTINGS: Final[tuple[ServerSetting, ...]] = (
    *all_with(
        unsupported("access control is not built yet"),
        string("authorizer.class.name", "", "The class that decides who may do what; empty lets everybody."),
        java_class(
            "principal.builder.class",
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            "The class that says who the user of a connection is.",
            change=Change.PER_BROKER,
        ),
    ),
    *all_with(
        nothing_to_tune("clients cannot log in, so no login can fail"),
        int32(
            "connection.failed.authentication.delay.ms",
            100,
            "How long a failed login waits for its answer, which slows down whoever guesses.",
            rule=at_least(0),
        ),
    ),
    *all_with(
        unsupported("it names Java classes, which this broker cannot load"),
        string("security.providers", None, "Classes that add security providers to Java."),
    ),
    *all_with(
        nothing_to_tune("the broker refuses requests for delegation tokens"),
        int64(
            "delegation.token.expiry.check.interval.ms",
            3600000,
            "How often expired tokens are looked for.",
            rule=_POSITIVE,
        ),
        int64(
            "delegation.token.expiry.time.ms",
            86400000,
            "How long a token holds if it is not renewed.",
            rule=_POSITIVE,
        ),
        int64(
            "delegation.token.max.lifetime.ms",
            604800000,
            "How long a token can be renewed.",
            rule=_POSITIVE,
        ),
    ),
    *all_with(
        unsupported("delegation tokens are not built yet"),
        password("delegation.token.secret.key", "The key that signs tokens, the same on all nodes."),
    ),
)
