"""The messages and header versions of each API key.

A family's module is imported when one of its keys is first used: a tool that needs three APIs loads three
files.
"""

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.schema.versions import Versions

_FAMILIES: dict[str, tuple[int, ...]] = {
    "produce": (0,),
    "fetch": (1,),
    "offsets": (2, 21, 23),
    "cluster": (3, 18, 60, 75),
    "group_offsets": (8, 9, 47),
    "classic_groups": (10, 11, 12, 13, 14),
    "group_admin": (15, 16, 42),
    "connection": (17, 36),
    "topics": (19, 20, 37),
    "transactions": (22, 24, 25, 26, 27, 28, 67),
    "acls": (29, 30, 31),
    "configs": (32, 33, 44, 74),
    "log_dirs": (34, 35, 73),
    "credentials": (38, 39, 40, 41, 50, 51),
    "replicas": (43, 45, 46, 56),
    "quotas": (48, 49),
    "quorum": (52, 53, 54, 55, 59),
    "brokers": (57, 58, 62, 63, 64, 70),
    "transaction_admin": (61, 65, 66),
    "consumer_groups": (68, 69),
    "telemetry": (71, 72),
    "share_groups": (76, 77),
    "share_fetch": (78, 79),
    "quorum_voters": (80, 81, 82),
    "share_state": (83, 84, 85, 86, 87),
    "streams_groups": (88, 89),
    "share_offsets": (90, 91, 92),
}
# The first unstable version, which a Kafka 4.3 broker serves only if configured: two-phase commit (KIP-939).
_UNSTABLE_FROM = {ApiKey.INIT_PRODUCER_ID: 6}
_FAMILY_OF = {key: family for family, keys in _FAMILIES.items() for key in keys}


class Api(NamedTuple):
    """One API key: its two messages, the versions of Kafka 4.3, and the listeners that serve it."""

    key: ApiKey
    request: type[Any]
    response: type[Any]
    versions: Versions
    flexible: Versions
    listeners: tuple[str, ...]

    @property
    def last_stable(self) -> int:
        """The last version that every Kafka 4.3 broker serves."""
        return _UNSTABLE_FROM.get(self.key, self.versions.last + 1) - 1

    def request_header_version(self, version: int) -> int:
        return 2 if version in self.flexible else 1

    def response_header_version(self, version: int) -> int:
        # A client that gets an ApiVersions response in another version than requested must still find the
        # correlation id and the error code, so this header never has tagged fields (KIP-511).
        if self.key is ApiKey.API_VERSIONS:
            return 0
        return 1 if version in self.flexible else 0


@cache
def api(key: ApiKey) -> Api:
    module = import_module(f"barnabas.protocol.messages.{_FAMILY_OF[key]}")
    name = "".join(word.capitalize() for word in key.name.split("_"))
    request: type[Any] = getattr(module, f"{name}Request")
    response: type[Any] = getattr(module, f"{name}Response")
    schema = schema_of(request)
    assert schema.key == schema_of(response).key == key, f"{name} is declared with a different key"
    return Api(key, request, response, schema.versions, schema.flexible, schema.listeners)
