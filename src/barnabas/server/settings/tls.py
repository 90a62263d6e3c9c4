"""TLS: keys, certificates, and what is asked of a client."""

from typing import Final

from barnabas.base.setting_support import unsupported
from barnabas.server.settings.declare import (
    Change,
    ServerSetting,
    all_with,
    boolean,
    java_class,
    password,
    string,
    strings,
)

_PER_BROKER: Final = Change.PER_BROKER

SETTINGS: Final[tuple[ServerSetting, ...]] = all_with(
    unsupported("TLS is not built yet"),
    boolean("ssl.allow.dn.changes", False, "Whether a new certificate may have another distinguished name."),
    boolean(
        "ssl.allow.san.changes", False, "Whether a new certificate may lack alternative names of the old one."
    ),
    strings("ssl.cipher.suites", (), "Which cipher suites may be used; empty is all.", change=_PER_BROKER),
    string(
        "ssl.client.auth",
        "none",
        "Whether a client has to show a certificate: required, requested or none.",
        change=_PER_BROKER,
    ),
    strings(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "Which versions of TLS are spoken.",
        change=_PER_BROKER,
    ),
    string(
        "ssl.endpoint.identification.algorithm",
        "https",
        "How a server's name is compared with its certificate; empty is not at all.",
        change=_PER_BROKER,
    ),
    java_class("ssl.engine.factory.class", None, "A class that makes TLS engines.", change=_PER_BROKER),
    password("ssl.key.password", "The password of the private key.", change=_PER_BROKER),
    string("ssl.keymanager.algorithm", "SunX509", "Java's algorithm for keys.", change=_PER_BROKER),
    password("ssl.keystore.certificate.chain", "The broker's certificates, as PEM.", change=_PER_BROKER),
    password("ssl.keystore.key", "The private key, as PEM.", change=_PER_BROKER),
    string("ssl.keystore.location", None, "The file with key and certificates.", change=_PER_BROKER),
    password("ssl.keystore.password", "The password of that file.", change=_PER_BROKER),
    string("ssl.keystore.type", "JKS", "The format of that file.", change=_PER_BROKER),
    string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the distinguished name of a certificate becomes the name of a user.",
    ),
    string("ssl.protocol", "TLSv1.3", "The version of TLS to begin with.", change=_PER_BROKER),
    string("ssl.provider", None, "Java's security provider for TLS.", change=_PER_BROKER),
    string("ssl.secure.random.implementation", None, "Java's random numbers for TLS.", change=_PER_BROKER),
    string("ssl.trustmanager.algorithm", "PKIX", "Java's algorithm for trust.", change=_PER_BROKER),
    password("ssl.truststore.certificates", "The certificates that are trusted, as PEM.", change=_PER_BROKER),
    string(
        "ssl.truststore.location", None, "The file with certificates that are trusted.", change=_PER_BROKER
    ),
    password("ssl.truststore.password", "The password of that file.", change=_PER_BROKER),
    string("ssl.truststore.type", "JKS", "The format of that file.", change=_PER_BROKER),
)
