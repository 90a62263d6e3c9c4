"""Authorization, principals and delegation tokens."""

from typing import Final

from barnabas.base.setting_rules import at_least
from barnabas.base.settings import nothing_to_tune, unsupported
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
        string("authorizer.class.name", "", "Authorizer class; empty allows all operations to everybody."),
        java_class(
            "principal.builder.class",
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            "Class that builds the principal of a connection.",
            change=Change.PER_BROKER,
        ),
    ),
    *all_with(
        nothing_to_tune("authentication is not supported, so no login can fail"),
        int32(
            "connection.failed.authentication.delay.ms",
            100,
            "Delay of the response to a failed login, which slows down guessing.",
            rule=at_least(0),
        ),
    ),
    *all_with(
        unsupported("it names Java classes, which this broker cannot load"),
        string("security.providers", None, "Classes that create Java security providers."),
    ),
    *all_with(
        nothing_to_tune("the broker does not support delegation tokens"),
        int64(
            "delegation.token.expiry.check.interval.ms",
            3600000,
            "Interval between checks for expired tokens.",
            rule=_POSITIVE,
        ),
        int64(
            "delegation.token.expiry.time.ms",
            86400000,
            "Lifetime of a token that is not renewed.",
            rule=_POSITIVE,
        ),
        int64(
            "delegation.token.max.lifetime.ms",
            604800000,
            "Maximum lifetime of a token, after which it cannot be renewed.",
            rule=_POSITIVE,
        ),
    ),
    *all_with(
        unsupported("delegation tokens are not built yet"),
        password("delegation.token.secret.key", "Key that signs tokens, the same on all nodes."),
    ),
)
