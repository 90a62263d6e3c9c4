"""`kafka.*` options: settings of our client, except those that the source or sink sets itself.

Also connectTimeout, the timeout of a query's first contact with brokers.
"""

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.base.settings import InvalidSetting, UnknownSetting, nearest, settings_of
from barnabas.client.consumer.settings import ConsumerSettings, parse_consumer_settings
from barnabas.client.producer.settings import ProducerSettings, producer_settings
from barnabas.client.settings import AdminSettings, ClientSettings, NoSettings
from barnabas.spark.options.values import BadOption, Values, hint

PREFIX: Final = "kafka."
SERVERS: Final = "kafka.bootstrap.servers"
CONNECT_TIMEOUT: Final = "connectTimeout"
# With Spark's own overhead, a query fails within 30 s.
_CONNECT_MS: Final = 20_000
_CALL_TIMEOUT: Final = "default.api.timeout.ms"
_SETUP_TIMEOUT: Final = "socket.connection.setup.timeout.ms"
_BYTES: Final = "keys and values are bytes: cast or decode the columns in the query"
# As with Spark's own source.
_OF_THE_SOURCE: Final = {
    "auto.offset.reset": "the source starts at startingOffsets and resumes from its checkpoint",
    "enable.auto.commit": "the source commits its own progress; see commitProgress",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "interceptor.classes": "interceptors are not supported",
}
_OF_THE_SINK: Final = {
    "key.serializer": _BYTES,
    "value.serializer": _BYTES,
    "transactional.id": "the sink chooses its transactional ids; see transactionalIdPrefix",
}
_OF_EXACTLY_ONCE: Final = {
    "enable.idempotence": "deliveryGuarantee=exactly-once always enables it",
    "acks": "deliveryGuarantee=exactly-once always uses all",
    "transaction.two.phase.commit.enable": "the sink does not use two-phase commit",
}


def admin_settings(client: Mapping[str, str]) -> dict[str, str]:
    """Return those settings of a consumer or producer that an admin client has, too."""
    known = settings_of(AdminSettings)
    return {name: text for name, text in client.items() if name in known}


def connect_ms(given: Values) -> int:
    """Return the value of connectTimeout."""
    found = given.duration_ms(CONNECT_TIMEOUT)
    if found == 0:
        raise BadOption(CONNECT_TIMEOUT, "it must be greater than 0 ms")
    return _CONNECT_MS if found is None else found


def call_timeout_ms(client: Mapping[str, str]) -> int:
    """Return the timeout of a call including its retries."""
    return _number(client, _CALL_TIMEOUT)


def in_time(client: Mapping[str, str], timeout_ms: int) -> dict[str, str]:
    """Return the settings with the timeout of a call, including its retries, limited to `timeout_ms`."""
    return {**client, _CALL_TIMEOUT: str(min(timeout_ms, call_timeout_ms(client)))}


def connecting_in_time(client: Mapping[str, str], timeout_ms: int) -> dict[str, str]:
    """Also limit connection setup, so that one silent address does not use up the time of the others."""
    share_ms = timeout_ms // (client["bootstrap.servers"].count(",") + 2)
    setup_ms = max(1, min(share_ms, _number(client, _SETUP_TIMEOUT)))
    return {**in_time(client, timeout_ms), _SETUP_TIMEOUT: str(setup_ms)}


def _number(client: Mapping[str, str], name: str) -> int:
    return int(client.get(name, str(settings_of(AdminSettings)[name].default)))


def producer_options(given: Values, *, transactional: bool) -> dict[str, str]:
    """Return the producer settings, by Kafka's names, after checking names and values."""
    refused = {**_OF_THE_SINK, **(_OF_EXACTLY_ONCE if transactional else {})}
    named = {"transactional_id": "any"} if transactional else {}
    return _client_settings(
        given, "producer", ProducerSettings, refused, lambda settings: producer_settings(settings, named)
    )


def consumer_settings(given: Values) -> dict[str, str]:
    """Return the consumer settings, by Kafka's names, after checking names and values."""
    return _client_settings(
        given,
        "consumer",
        ConsumerSettings,
        _OF_THE_SOURCE,
        lambda settings: parse_consumer_settings(settings, {}),
    )


def option_names(declaring: type[ClientSettings]) -> list[str]:
    """Return the option names of a client's settings."""
    return [PREFIX + name for name in settings_of(declaring)]


def _client_settings(
    given: Values,
    kind: str,
    declaring: type[ClientSettings],
    refused: Mapping[str, str],
    check: Callable[[dict[str, str]], object],
) -> dict[str, str]:
    found = given.starting_with(PREFIX)
    settings = {name.lower(): text for name, text in found.items()}
    if SERVERS.removeprefix(PREFIX) not in settings:
        _refuse_misspelled_servers(given, kind, declaring, found)
        raise BadOption(SERVERS, "it is required")
    for name, why in refused.items():
        if name in settings:
            raise BadOption(PREFIX + name, why)
    try:
        check(settings)
    except UnknownSetting as wrong:
        raise _no_such(wrong.name, kind, wrong.nearest) from None
    except InvalidSetting as wrong:
        # The value of a setting that the client does not declare may be a secret, such as a TLS password.
        shown = f"{wrong.value!r} " if wrong.name in settings_of(declaring) else ""
        raise BadOption(PREFIX + wrong.name, shown + wrong.what) from wrong
    except NoSettings as wrong:
        raise BadOption(SERVERS, "it names no broker") from wrong
    return settings


def _refuse_misspelled_servers(
    given: Values, kind: str, declaring: type[ClientSettings], found: Mapping[str, str]
) -> None:
    declared = settings_of(declaring)
    wanted = SERVERS.removeprefix(PREFIX)
    if (meant := nearest(wanted, [name for name in found if name.lower() not in declared])) is not None:
        raise _no_such(meant, kind, wanted)
    given.refuse_misspelled(SERVERS)


def _no_such(name: str, kind: str, meant: str | None) -> BadOption:
    return BadOption(PREFIX + name, f"no such {kind} setting" + hint(meant and PREFIX + meant))
