"""SASL: who a client says that it is, and how it proves it."""

from typing import Final

from barnabas.base.setting_support import unsupported
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
        "How long a login holds before a client has to log in again; 0 is for ever.",
    ),
    strings("sasl.enabled.mechanisms", ("GSSAPI",), "Which mechanisms clients may use.", change=_PER_BROKER),
    password("sasl.jaas.config", "The login of a listener, as a line of JAAS.", change=_PER_BROKER),
    string("sasl.mechanism.controller.protocol", "GSSAPI", "The mechanism towards controllers."),
    string(
        "sasl.mechanism.inter.broker.protocol", "GSSAPI", "The mechanism between brokers.", change=_PER_BROKER
    ),
    int32(
        "sasl.server.max.receive.size", 524288, "How large a client's message may be before it is logged in."
    ),
    java_class("sasl.server.callback.handler.class", None, "A class that checks logins."),
    java_class("sasl.client.callback.handler.class", None, "A class that gives this node's own credentials."),
    java_class("sasl.login.callback.handler.class", None, "A class that is asked during this node's login."),
    java_class("sasl.login.class", None, "A class that does this node's login."),
    int32("sasl.login.connect.timeout.ms", None, "How long connecting to an identity provider may take."),
    int32("sasl.login.read.timeout.ms", None, "How long its answer may take."),
    int64("sasl.login.retry.backoff.ms", 100, "The first pause after a failed try to reach it."),
    int64("sasl.login.retry.backoff.max.ms", 10000, "The longest pause after a failed try."),
    double(
        "sasl.login.refresh.window.factor",
        0.8,
        "After which part of a token's life it is refreshed.",
        change=_PER_BROKER,
    ),
    double("sasl.login.refresh.window.jitter", 0.05, "How much chance is in that part.", change=_PER_BROKER),
    int16(
        "sasl.login.refresh.buffer.seconds", 300, "How long before its end at the latest.", change=_PER_BROKER
    ),
    int16("sasl.login.refresh.min.period.seconds", 60, "How long between two refreshes.", change=_PER_BROKER),
)

_KERBEROS: Final = (
    string("sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "Where kinit is.", change=_PER_BROKER),
    int64("sasl.kerberos.min.time.before.relogin", 60000, "How long between two logins.", change=_PER_BROKER),
    strings(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        "How a Kerberos principal becomes the name of a user.",
        change=_PER_BROKER,
    ),
    string("sasl.kerberos.service.name", None, "The principal that brokers run as.", change=_PER_BROKER),
    double(
        "sasl.kerberos.ticket.renew.jitter", 0.05, "How much chance is in the renewal.", change=_PER_BROKER
    ),
    double(
        "sasl.kerberos.ticket.renew.window.factor",
        0.8,
        "After which part of a ticket's life it is renewed.",
        change=_PER_BROKER,
    ),
)

_OAUTHBEARER: Final = (
    string("sasl.oauthbearer.assertion.algorithm", "RS256", "How an assertion is signed: RS256 or ES256."),
    string("sasl.oauthbearer.assertion.claim.aud", None, "For whom an assertion is."),
    int32("sasl.oauthbearer.assertion.claim.exp.seconds", 300, "How long an assertion holds."),
    string("sasl.oauthbearer.assertion.claim.iss", None, "Who makes an assertion."),
    boolean(
        "sasl.oauthbearer.assertion.claim.jti.include", False, "Whether an assertion has an id of its own."
    ),
    int32("sasl.oauthbearer.assertion.claim.nbf.seconds", 60, "How far back an assertion begins to hold."),
    string("sasl.oauthbearer.assertion.claim.sub", None, "Of whom an assertion speaks."),
    string("sasl.oauthbearer.assertion.file", None, "A file with a finished assertion."),
    string("sasl.oauthbearer.assertion.private.key.file", None, "A file with the key that signs assertions."),
    password("sasl.oauthbearer.assertion.private.key.passphrase", "The password of that key."),
    string("sasl.oauthbearer.assertion.template.file", None, "A file with further claims."),
    string("sasl.oauthbearer.client.credentials.client.id", None, "This node's id at the identity provider."),
    password("sasl.oauthbearer.client.credentials.client.secret", "The secret that goes with the id."),
    int32("sasl.oauthbearer.clock.skew.seconds", 30, "How far the provider's clock may be off."),
    strings("sasl.oauthbearer.expected.audience", (), "For whom a token must be."),
    string("sasl.oauthbearer.expected.issuer", None, "Who must have made a token."),
    int64("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3600000, "How often the provider's keys are fetched."),
    int64("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100, "The first pause after a failed fetch."),
    int64(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10000,
        "The longest pause after a failed fetch.",
    ),
    string("sasl.oauthbearer.jwks.endpoint.url", None, "Where the provider's keys are."),
    java_class(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "A class that gets tokens.",
    ),
    java_class(
        "sasl.oauthbearer.jwt.validator.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "A class that checks tokens.",
    ),
    string("sasl.oauthbearer.scope", None, "The scope that this node asks for."),
    string("sasl.oauthbearer.scope.claim.name", "scope", "What the scope is called in a token."),
    string("sasl.oauthbearer.sub.claim.name", "sub", "What the user is called in a token."),
    string("sasl.oauthbearer.token.endpoint.url", None, "Where tokens are issued."),
)

SETTINGS: Final[tuple[ServerSetting, ...]] = all_with(
    unsupported("SASL is not built yet"), *_COMMON, *_KERBEROS, *_OAUTHBEARER
)
