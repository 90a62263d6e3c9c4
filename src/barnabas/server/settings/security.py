"""Authorisation, principals, and delegation tokens."""

from typing import Final

from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    int32,
    int64,
    java_class,
    password,
    string,
    unsupported,
)

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
        unsupported("clients do not log in yet"),
        int32(
            "connection.failed.authentication.delay.ms",
            100,
            "How long a failed login waits for its answer, which slows down whoever guesses.",
        ),
    ),
    *all_with(
        unsupported("it names Java classes, which this broker cannot load"),
        string("security.providers", None, "Classes that add security providers to Java."),
    ),
    *all_with(
        unsupported("delegation tokens are not built yet"),
        int64(
            "delegation.token.expiry.check.interval.ms", 3600000, "How often expired tokens are looked for."
        ),
        int64("delegation.token.expiry.time.ms", 86400000, "How long a token holds if it is not renewed."),
        int64("delegation.token.max.lifetime.ms", 604800000, "How long a token can be renewed."),
        password("delegation.token.secret.key", "The key that signs tokens, the same on all nodes."),
    ),
)
