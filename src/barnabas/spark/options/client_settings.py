"""`kafka.*` options: settings of our client, less those that a source decides by itself."""

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.base.settings import InvalidSetting, UnknownSetting, settings_of
from barnabas.base.spelling import nearest
from barnabas.client.admin.settings import AdminSettings
from barnabas.client.consumer.settings import ConsumerSettings, parse_consumer_settings
from barnabas.client.producer.settings import ProducerSettings, producer_settings
from barnabas.client.settings import ClientSettings, NoSettings
from barnabas.spark.options.errors import BadOption
from barnabas.spark.options.values import Values, hint

PREFIX: Final = "kafka."
SERVERS: Final = "kafka.bootstrap.servers"
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
    """What was given is for a consumer or a producer: an admin client knows some of it."""
    known = settings_of(AdminSettings)
    return {name: text for name, text in client.items() if name in known}


def call_timeout_ms(client: Mapping[str, str]) -> int:
    """How long a call may take, with all its retries."""
    return _number(client, _CALL_TIMEOUT)


def in_time(client: Mapping[str, str], timeout_ms: int) -> dict[str, str]:
    """The same, and no call takes longer than that, with all its retries."""
    return {**client, _CALL_TIMEOUT: str(min(timeout_ms, call_timeout_ms(client)))}


def connecting_in_time(client: Mapping[str, str], timeout_ms: int) -> dict[str, str]:
    """The same, with time left for every address: one that does not answer must not use up all of it."""
    share_ms = timeout_ms // (client["bootstrap.servers"].count(",") + 2)
    setup_ms = max(1, min(share_ms, _number(client, _SETUP_TIMEOUT)))
    return {**in_time(client, timeout_ms), _SETUP_TIMEOUT: str(setup_ms)}


def _number(client: Mapping[str, str], name: str) -> int:
    return int(client.get(name, str(settings_of(AdminSettings)[name].default)))


def producer_options(given: Values, *, transactional: bool) -> dict[str, str]:
    """By Kafka's names. All of them are ones that our producer takes, with values that it can have."""
    refused = {**_OF_THE_SINK, **(_OF_EXACTLY_ONCE if transactional else {})}
    named = {"transactional_id": "any"} if transactional else {}
    return _client_settings(
        given, "producer", ProducerSettings, refused, lambda settings: producer_settings(settings, named)
    )


def consumer_settings(given: Values) -> dict[str, str]:
    """By Kafka's names. All of them are ones that our consumer takes, with values that it can have."""
    return _client_settings(
        given,
        "consumer",
        ConsumerSettings,
        _OF_THE_SOURCE,
        lambda settings: parse_consumer_settings(settings, {}),
    )


def option_names(declaring: type[ClientSettings]) -> list[str]:
    """How settings of a client are called as options."""
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
        # The value of a setting that is not ours may be a secret, such as a password for TLS.
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
