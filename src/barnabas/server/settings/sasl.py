"""SASL authentication."""

from typing import Final

from barnabas.base.settings import unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    boolean,
    double,
    int16,
    int32,
    int64,
    java_class,
    password,
    string,
    strings,
)

_PER_BROKER: Final = Change.PER_BROKER

_COMMON: Final = (
    int64(
        "connections.max.reauth.ms",
        0,
        "Time after which a client must authenticate again; 0 means never.",
    ),
    strings(
        "sasl.enabled.mechanisms", ("GSSAPI",), "SASL mechanisms that clients may use.", change=_PER_BROKER
    ),
    password(
        "sasl.jaas.config",
        "JAAS login context of a listener, in the format of a JAAS configuration file.",
        change=_PER_BROKER,
    ),
    string("sasl.mechanism.controller.protocol", "GSSAPI", "SASL mechanism for connections to controllers."),
    string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "SASL mechanism for connections between brokers.",
        change=_PER_BROKER,
    ),
    int32("sasl.server.max.receive.size", 524288, "Maximum request size before a client is authenticated."),
    java_class(
        "sasl.server.callback.handler.class",
        None,
        "Callback handler class that verifies clients' credentials.",
    ),
    java_class(
        "sasl.client.callback.handler.class",
        None,
        "Callback handler class that supplies this node's credentials.",
    ),
    java_class("sasl.login.callback.handler.class", None, "Callback handler class of this node's login."),
    java_class("sasl.login.class", None, "Class that performs this node's login."),
    int32("sasl.login.connect.timeout.ms", None, "Timeout of a connection to an identity provider."),
    int32("sasl.login.read.timeout.ms", None, "Timeout of a read from an identity provider."),
    int64("sasl.login.retry.backoff.ms", 100, "First backoff after a failed login attempt."),
    int64("sasl.login.retry.backoff.max.ms", 10000, "Maximum backoff after failed login attempts."),
    double(
        "sasl.login.refresh.window.factor",
        0.8,
        "Fraction of a token's lifetime after which it is refreshed.",
        change=_PER_BROKER,
    ),
    double("sasl.login.refresh.window.jitter", 0.05, "Random part of that fraction.", change=_PER_BROKER),
    int16(
        "sasl.login.refresh.buffer.seconds",
        300,
        "Minimum time before its expiry at which a token is refreshed.",
        change=_PER_BROKER,
    ),
    int16(
        "sasl.login.refresh.min.period.seconds", 60, "Minimum time between two refreshes.", change=_PER_BROKER
    ),
)

_KERBEROS: Final = (
    string("sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "Path of kinit.", change=_PER_BROKER),
    int64(
        "sasl.kerberos.min.time.before.relogin", 60000, "Minimum time between two logins.", change=_PER_BROKER
    ),
    strings(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        "Rules that map Kerberos principals to user names.",
        change=_PER_BROKER,
    ),
    string(
        "sasl.kerberos.service.name", None, "Kerberos principal that the brokers run as.", change=_PER_BROKER
    ),
    double("sasl.kerberos.ticket.renew.jitter", 0.05, "Random part of the renewal time.", change=_PER_BROKER),
    double(
        "sasl.kerberos.ticket.renew.window.factor",
        0.8,
        "Fraction of a ticket's lifetime after which it is renewed.",
        change=_PER_BROKER,
    ),
)

_OAUTHBEARER: Final = (
    string(
        "sasl.oauthbearer.assertion.algorithm", "RS256", "Signature algorithm of assertions: RS256 or ES256."
    ),
    string("sasl.oauthbearer.assertion.claim.aud", None, "Audience (aud) of assertions."),
    int32("sasl.oauthbearer.assertion.claim.exp.seconds", 300, "Lifetime of assertions (exp)."),
    string("sasl.oauthbearer.assertion.claim.iss", None, "Issuer (iss) of assertions."),
    boolean(
        "sasl.oauthbearer.assertion.claim.jti.include", False, "Include a unique id (jti) in assertions."
    ),
    int32(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        60,
        "Time before their creation from which assertions are valid (nbf).",
    ),
    string("sasl.oauthbearer.assertion.claim.sub", None, "Subject (sub) of assertions."),
    string("sasl.oauthbearer.assertion.file", None, "File with a ready-made assertion."),
    string(
        "sasl.oauthbearer.assertion.private.key.file",
        None,
        "File with the private key that signs assertions.",
    ),
    password("sasl.oauthbearer.assertion.private.key.passphrase", "Passphrase of that key."),
    string("sasl.oauthbearer.assertion.template.file", None, "File with additional claims."),
    string(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        "Client id of this node at the identity provider.",
    ),
    password("sasl.oauthbearer.client.credentials.client.secret", "Client secret of this node."),
    int32("sasl.oauthbearer.clock.skew.seconds", 30, "Tolerated clock difference to the identity provider."),
    strings("sasl.oauthbearer.expected.audience", (), "Audiences accepted in tokens."),
    string("sasl.oauthbearer.expected.issuer", None, "Issuer required in tokens."),
    int64(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3600000,
        "Interval at which the provider's keys are fetched.",
    ),
    int64(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "First backoff after a failed fetch of the keys.",
    ),
    int64(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10000,
        "Maximum backoff after failed fetches of the keys.",
    ),
    string("sasl.oauthbearer.jwks.endpoint.url", None, "URL of the provider's keys (JWKS)."),
    java_class(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "Class that retrieves tokens.",
    ),
    java_class(
        "sasl.oauthbearer.jwt.validator.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "Class that validates tokens.",
    ),
    string("sasl.oauthbearer.scope", None, "Scope that this node requests."),
    string("sasl.oauthbearer.scope.claim.name", "scope", "Name of the scope claim in a token."),
    string("sasl.oauthbearer.sub.claim.name", "sub", "Name of the subject claim in a token."),
    string("sasl.oauthbearer.token.endpoint.url", None, "URL of the provider's token endpoint."),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = all_with(
    unsupported("SASL is not built yet"), *_COMMON, *_KERBEROS, *_OAUTHBEARER
)
