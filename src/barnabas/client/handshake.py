"""The ApiVersions handshake at the start of a connection.

A broker that does not support our ApiVersions version responds in version 0 with the versions that it does
support (KIP-511).
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from barnabas import __version__
from barnabas.client.errors import UnsupportedByBroker, refused
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_response
from barnabas.protocol.messages.cluster import ApiVersionsRequest

_SOFTWARE: Final = "barnabas"
# In every version of the ApiVersions response the error code follows the correlation id.
_ERROR_AT: Final = slice(4, 6)
# Frame limit of the handshake: the first bytes of other protocols decode to larger lengths.
HELLO_BYTES_MAX: Final = 1024 * 1024


class Requester(Protocol):
    address: str

    async def ask(self, request: object, *, timeout_ms: float, version: int | None = None) -> Any: ...


class NegotiatedVersions:
    """The API versions and features of a broker; empty before the handshake."""

    def __init__(self, address: str, answer: Any = None) -> None:
        self.address = address
        self.apis: Mapping[int, tuple[int, int]] = {}
        self.supported_features: Mapping[str, tuple[int, int]] = {}
        self.finalized_features: Mapping[str, tuple[int, int]] = {}
        self._chosen: dict[ApiKey, int] = {}
        if answer is None:
            return
        self.apis = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        self.supported_features = {
            row.name: (row.min_version, row.max_version) for row in answer.supported_features
        }
        self.finalized_features = {
            row.name: (row.min_version_level, row.max_version_level) for row in answer.finalized_features
        }

    def version_of(self, key: ApiKey) -> int:
        """Return the newest version that both sides support."""
        chosen = self._chosen.get(key)
        if chosen is None:
            chosen = self._chosen[key] = self._choose(key)
        return chosen

    def _choose(self, key: ApiKey) -> int:
        ours = api(key).versions
        theirs = self.apis.get(key)
        if theirs is None:
            raise UnsupportedByBroker(key.name, self.address, "the broker does not list it in ApiVersions")
        newest = min(ours.last, theirs[1])
        if newest < max(ours.first, theirs[0]):
            why = f"the broker supports versions {theirs[0]} to {theirs[1]}, this client {ours}"
            raise UnsupportedByBroker(key.name, self.address, why)
        return newest


async def negotiate_versions(connection: Requester, timeout_ms: float) -> NegotiatedVersions:
    """Request the API versions; retry in an older version if the broker does not support ours."""
    request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version=__version__)
    newest = api(ApiKey.API_VERSIONS).versions.last
    answer = await connection.ask(request, timeout_ms=timeout_ms, version=newest)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        theirs = [row.max_version for row in answer.api_keys if row.api_key == ApiKey.API_VERSIONS]
        older = max(0, min(newest, max(theirs, default=0)))
        answer = await connection.ask(request, timeout_ms=timeout_ms, version=older)
    if answer.error_code != ErrorCode.NONE:
        raise refused(answer.error_code, about=f"API_VERSIONS at {connection.address}")
    return NegotiatedVersions(connection.address, answer)


def decode_api_versions(frame: bytes, version: int) -> Any:
    """Decode an ApiVersions response, which is in version 0 if the broker does not support `version`."""
    refusal = int.from_bytes(frame[_ERROR_AT], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
    return decode_response(frame, 0 if refusal else version, key=ApiKey.API_VERSIONS)[1]


def guess_protocol(words: bytes) -> str:
    """Guess the protocol of a peer from its first four bytes."""
    if words == b"HTTP":
        return " (looks like an HTTP server)"
    # A TLS 1.x alert or handshake record.
    if words[:1] in (b"\x15", b"\x16") and words[1:2] == b"\x03":
        return " (looks like a TLS listener)"
    return ""
