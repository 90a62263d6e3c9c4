"""TLS: keys, certificates and client authentication."""

from typing import Final

from barnabas.base.settings import unsupported
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
    boolean("ssl.allow.dn.changes", False, "Allow a new certificate to have another distinguished name."),
    boolean(
        "ssl.allow.san.changes", False, "Allow a new certificate to lack alternative names of the old one."
    ),
    strings("ssl.cipher.suites", (), "Enabled cipher suites; empty means all.", change=_PER_BROKER),
    string(
        "ssl.client.auth",
        "none",
        "Client authentication by certificate: required, requested or none.",
        change=_PER_BROKER,
    ),
    strings(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "Enabled TLS versions.",
        change=_PER_BROKER,
    ),
    string(
        "ssl.endpoint.identification.algorithm",
        "https",
        "Algorithm that verifies a server's host name against its certificate; empty disables it.",
        change=_PER_BROKER,
    ),
    java_class("ssl.engine.factory.class", None, "Class that creates TLS engines.", change=_PER_BROKER),
    password("ssl.key.password", "Password of the private key.", change=_PER_BROKER),
    string(
        "ssl.keymanager.algorithm", "SunX509", "Algorithm of Java's key manager factory.", change=_PER_BROKER
    ),
    password(
        "ssl.keystore.certificate.chain",
        "Certificate chain of the broker, in PEM format.",
        change=_PER_BROKER,
    ),
    password("ssl.keystore.key", "Private key, in PEM format.", change=_PER_BROKER),
    string("ssl.keystore.location", None, "Path of the key store.", change=_PER_BROKER),
    password("ssl.keystore.password", "Password of the key store.", change=_PER_BROKER),
    string("ssl.keystore.type", "JKS", "File format of the key store.", change=_PER_BROKER),
    string(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "Rules that map distinguished names of certificates to user names.",
    ),
    string("ssl.protocol", "TLSv1.3", "Preferred TLS version.", change=_PER_BROKER),
    string("ssl.provider", None, "Java security provider for TLS.", change=_PER_BROKER),
    string(
        "ssl.secure.random.implementation", None, "Java random number generator for TLS.", change=_PER_BROKER
    ),
    string(
        "ssl.trustmanager.algorithm", "PKIX", "Algorithm of Java's trust manager factory.", change=_PER_BROKER
    ),
    password("ssl.truststore.certificates", "Trusted certificates, in PEM format.", change=_PER_BROKER),
    string("ssl.truststore.location", None, "Path of the trust store.", change=_PER_BROKER),
    password("ssl.truststore.password", "Password of the trust store.", change=_PER_BROKER),
    string("ssl.truststore.type", "JKS", "File format of the trust store.", change=_PER_BROKER),
)
