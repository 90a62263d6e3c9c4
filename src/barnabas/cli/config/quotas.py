"""Describe and alter quotas of users, clients and addresses, and SCRAM credentials of users."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cli.config.entities import CLIENTS, DEFAULT, IPS, USERS, Entities
from barnabas.cli.tool import ToolFailed, print_json
from barnabas.client.errors import refused
from barnabas.protocol.messages.quotas import (
    AlterClientQuotasEntryData,
    AlterClientQuotasRequest,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

QUOTAS: Final = frozenset(
    ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
)
_IP_QUOTAS: Final = frozenset(("connection_creation_rate",))
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_WIRE_TYPES: Final = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
# Names of the components in the output, in its order.
_SHOWN: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_EXACT, _DEFAULT_ONLY, _ANY = 0, 1, 2
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


# Describe


async def describe(admin: "Admin", meant: Entities, *, everything: bool, as_json: bool) -> None:
    """Print quotas and credentials. `everything` has no effect: quotas have no defaults."""
    found = await _quotas(admin, meant)
    credentials: dict[str, str] = {}
    # Only named users have credentials: not a user's client, and not the default user.
    if CLIENTS not in meant.types and IPS not in meant.types and DEFAULT not in meant.names:
        credentials = await _credentials(admin, meant.names)
    if as_json:
        entries = [{"entity": entity, "quotas": values} for entity, values in found]
        print_json({"quotas": entries, "credentials": credentials})
        return
    for entity, values in found:
        listed = ", ".join(f"{name}={value}" for name, value in values.items())
        print(f"Quota configs for {_entity_text(entity)} are {listed}")
    for user, text in credentials.items():
        print(f"SCRAM credential configs for user-principal '{user}' are {text}")


def _entity_text(entity: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"the default {shown}" if entity[kind] is None else f"{shown} '{entity[kind]}'"
        for kind, shown in _SHOWN.items()
        if kind in entity
    )


async def _quotas(admin: "Admin", meant: Entities) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    components = []
    for at, kind in enumerate(meant.types):
        name = meant.names[at] if at < len(meant.names) else None
        how = _ANY if name is None else _DEFAULT_ONLY if name == DEFAULT else _EXACT
        components.append(ComponentData(entity_type=_WIRE_TYPES[kind], match_type=how, match=name or None))
    answer = await admin.cluster.ask(DescribeClientQuotasRequest(components=components, strict=True))
    if answer.error_code:
        raise refused(answer.error_code, about="quotas", message=answer.error_message)
    found = [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {row.key: row.value for row in entry.values},
        )
        for entry in answer.entries or ()
    ]
    return sorted(found, key=lambda each: _entity_text(each[0]))


async def _credentials(admin: "Admin", users: Sequence[str]) -> dict[str, str]:
    from barnabas.protocol.messages.credentials import DescribeUserScramCredentialsRequest, UserName

    # None requests all users.
    wanted = [UserName(name=user) for user in users] or None
    answer = await admin.cluster.ask(DescribeUserScramCredentialsRequest(users=wanted))
    if answer.error_code:
        raise refused(answer.error_code, about="SCRAM credentials", message=answer.error_message)
    found = {}
    for result in sorted(answer.results, key=lambda each: str(each.user)):
        if not result.error_code:
            found[result.user] = ", ".join(
                f"{MECHANISMS.get(info.mechanism, 'UNKNOWN')}=iterations={info.iterations}"
                for info in result.credential_infos
            )
    return found


# Alter


async def alter(admin: "Admin", meant: Entities, added: dict[str, str], deleted: list[str]) -> None:
    _check_names(meant, added, deleted)
    ops = [OpData(key=name, value=_number(name, text), remove=False) for name, text in added.items()]
    ops += [OpData(key=name, value=0.0, remove=True) for name in deleted]
    if deleted:
        current = next((values for _, values in await _quotas(admin, meant)), {})
        wrong = [name for name in deleted if name not in current]
        if wrong:
            raise ToolFailed(f"Invalid config(s): {','.join(wrong)}")
    entity = [
        EntityData(entity_type=_WIRE_TYPES[kind], entity_name=name or None)
        for kind, name in zip(meant.types, meant.names, strict=True)
    ]
    entry = AlterClientQuotasEntryData(entity=entity, ops=ops)
    answer = await admin.cluster.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False))
    for result in answer.entries:
        if result.error_code:
            raise refused(result.error_code, about="quotas", message=result.error_message)


def _check_names(meant: Entities, added: Iterable[str], deleted: Iterable[str]) -> None:
    if meant.type == IPS:
        unknown = [name for name in (*added, *deleted) if name not in _IP_QUOTAS]
        if unknown:
            raise ToolFailed(
                f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server."
                f" Unexpected config names: {','.join(unknown)}"
            )
        return
    is_user = meant.types == [USERS]
    mechanisms = set(MECHANISMS.values()) if is_user else set()
    for names, what in ((added, "added"), (deleted, "deleted")):
        unknown = [name for name in names if name not in QUOTAS | mechanisms]
        if unknown:
            kinds = "quota and SCRAM credential configs" if is_user else "quota configs"
            raise ToolFailed(
                f"Only {kinds} can be {what} for '{USERS if is_user else CLIENTS}' using --bootstrap-server."
                f" Unexpected config names: Set({', '.join(unknown)})"
            )
    if mechanisms & {*added, *deleted}:
        raise ToolFailed("SCRAM credentials cannot be changed yet: authentication is not built")


def _number(name: str, text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ToolFailed(f"Cannot parse quota configuration value for {name}: {text}")
    return float(text)
