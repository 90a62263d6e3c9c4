from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.base.errors import Malformed
from barnabas.base.ids import Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import (
    Request,
    UnsupportedRequest,
    decode_request,
    decode_response,
    encode_request,
    refuse_api_versions,
    response_parts,
)
from barnabas.protocol.messages.cluster import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from barnabas.protocol.messages.connection import RequestHeader
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.schema.codec import NotEncodable, decode

# The tuned Fetch decoder is a kernel.
pytestmark = pytest.mark.kernel

EVERY_VERSION = [(key, version) for key in ApiKey for version in api(key).versions.all()]
BIG_ID = 0x7FFFFFFF


def request_frame(key: int, version: int, rest: bytes = b"", correlation_id: int = 7) -> bytes:
    start = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    return start + correlation_id.to_bytes(4, "big", signed=True) + rest


METADATA_12 = encode_request(
    MetadataRequest(topics=[]), 12, key=ApiKey.METADATA, correlation_id=BIG_ID, client_id="größe"
)


# ---- requests


@given(
    version=st.sampled_from([8, 12]),
    size=st.one_of(st.integers(-2, 6), st.integers(-(2**15), 2**15 - 1)),
    name=st.one_of(st.binary(max_size=6), st.text(max_size=3).map(str.encode)),
    rest=st.binary(max_size=6),
    fits=st.booleans(),
)
@example(version=12, size=0, name=b"name", rest=b"", fits=True)
@example(version=12, size=-1, name=b"", rest=b"", fits=False)
@example(version=8, size=-1, name=b"", rest=b"", fits=False)
@example(version=8, size=-5, name=b"", rest=bytes(70_000), fits=False)
@example(version=12, size=-(2**15), name=b"", rest=bytes(70_000), fits=False)
def test_a_header_is_read_as_the_general_decoder_reads_it(
    version: int, size: int, name: bytes, rest: bytes, fits: bool
) -> None:
    size = len(name) if fits else size
    frame = request_frame(ApiKey.METADATA, version, size.to_bytes(2, "big", signed=True) + name + rest)

    assert _told_of(lambda: decode_request(frame)) == _told_of(lambda: _read_in_general(frame, version))


def fields_of(request: Request) -> tuple[object, ...]:
    return request.api, request.version, request.correlation_id, request.client_id, request.body


def _read_in_general(frame: bytes, version: int) -> Request:
    spoken = api(ApiKey.METADATA)
    header, at = decode(RequestHeader, spoken.request_header_version(version), frame)
    body, _ = decode(MetadataRequest, version, frame, at)
    return Request(spoken, version, header.correlation_id, header.client_id, body)


def _told_of(read: Callable[[], Request]) -> tuple[object, ...] | str:
    try:
        return fields_of(read())
    except Malformed as wrong:
        return str(wrong)


@pytest.mark.parametrize("client_id", [None, "", "a", "x" * 32_767, "größe", "\x00"])
def test_every_client_id_round_trips(client_id: str | None) -> None:
    for key, version in EVERY_VERSION:
        if api(key).request_header_version(version) < 1:
            continue
        body = api(key).request()
        frame = encode_request(body, version, key=key, correlation_id=7, client_id=client_id)

        assert decode_request(frame[4:]).client_id == client_id, (key, version)


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_a_request_round_trips_in_every_version(key: ApiKey) -> None:
    for version in api(key).versions.all():
        body = api(key).request()

        data = encode_request(body, version, key=key, correlation_id=-5, client_id="me")
        request = decode_request(data[4:])

        assert int.from_bytes(data[:4], "big") == len(data) - 4
        assert fields_of(request) == (api(key), version, -5, "me", body)


def test_request_bytes_are_header_and_body() -> None:
    body = ApiVersionsRequest(client_software_name="n", client_software_version="v")

    old = encode_request(body, 0, key=ApiKey.API_VERSIONS, correlation_id=1, client_id=None)
    flexible = encode_request(body, 3, key=ApiKey.API_VERSIONS, correlation_id=1, client_id="me")

    assert old == bytes.fromhex("0000000a 0012 0000 00000001 ffff")
    # The client id keeps its two-byte length in flexible headers; then the header's tags, strings, tags.
    assert flexible == bytes.fromhex("00000012 0012 0003 00000001 00026d65 00 026e 0276 00")


def test_a_client_need_not_have_an_id() -> None:
    data = encode_request(MetadataRequest(), 9, key=ApiKey.METADATA, correlation_id=1, client_id=None)

    assert decode_request(data[4:]).client_id is None


def test_ids_keep_their_ends_and_their_letters() -> None:
    request = decode_request(METADATA_12[4:])

    assert request.correlation_id == BIG_ID
    assert request.client_id == "größe"


def test_bytes_after_the_body_are_ignored() -> None:
    assert fields_of(decode_request(METADATA_12[4:] + b"more")) == fields_of(decode_request(METADATA_12[4:]))


def test_unknown_tags_in_the_header_are_skipped() -> None:
    plain = bytes.fromhex("00026d65 00 026e 0276 00")
    # One tag, number 99, of two bytes.
    tagged = bytes.fromhex("00026d65 01 63 02abcd 026e 0276 00")

    expected = decode_request(request_frame(ApiKey.API_VERSIONS, 3, plain))
    read = decode_request(request_frame(ApiKey.API_VERSIONS, 3, tagged))
    assert fields_of(read) == fields_of(expected)
    assert expected.body.client_software_version == "v"


@pytest.mark.parametrize("size", range(8))
def test_a_frame_too_short_for_a_header_is_malformed(size: int) -> None:
    with pytest.raises(Malformed, match=rf"^request: {size} bytes are too few for a request header$"):
        decode_request(bytes(size))


@pytest.mark.parametrize("end", range(8, len(METADATA_12) - 4))
def test_a_request_cut_short_is_malformed(end: int) -> None:
    with pytest.raises(Malformed):
        decode_request(METADATA_12[4:][:end])


def test_a_client_id_with_a_wrong_length_is_malformed() -> None:
    with pytest.raises(Malformed, match="client_id"):
        decode_request(request_frame(ApiKey.METADATA, 1, b"\x7f\xffme"))


# ---- unsupported keys and versions


@pytest.mark.parametrize("key", [-1, 4, 7, 93, 32767, -32768])
def test_an_unknown_key_is_unsupported(key: int) -> None:
    with pytest.raises(UnsupportedRequest) as refused:
        decode_request(request_frame(key, 0))

    assert (refused.value.key, refused.value.version, refused.value.correlation_id) == (key, 0, 7)
    assert str(refused.value) == f"api key {key} (unknown) version 0 is not supported"


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_versions_beside_the_range_are_unsupported(key: ApiKey) -> None:
    spoken = api(key).versions
    for version in (spoken.first - 1, spoken.last + 1, 32767, -32768):
        with pytest.raises(UnsupportedRequest, match=rf"\({key.name}\) version {version} is") as refused:
            decode_request(request_frame(key, version, correlation_id=-1))

        assert (refused.value.key, refused.value.version) == (key, version)
        assert refused.value.correlation_id == -1


def test_an_unsupported_version_is_not_malformed() -> None:
    # A server closes the connection for a malformed request, but may respond to an unsupported one.
    assert not issubclass(UnsupportedRequest, Malformed)


@given(st.sampled_from(EVERY_VERSION), st.binary(max_size=60))
def test_garbage_behind_a_good_start_is_a_request_or_malformed(
    of: tuple[ApiKey, int], garbage: bytes
) -> None:
    key, version = of
    try:
        request = decode_request(request_frame(key, version, garbage))
    except Malformed:
        return
    assert (request.api.key, request.version, request.correlation_id) == (key, version, 7)


@given(st.binary(max_size=40))
def test_garbage_is_a_request_or_malformed_or_unsupported(garbage: bytes) -> None:
    try:
        decode_request(garbage)
    except (Malformed, UnsupportedRequest):
        return


# ---- responses


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_a_response_round_trips_in_every_version(key: ApiKey) -> None:
    for version in api(key).versions.all():
        body = api(key).response()

        data = b"".join(response_parts(body, version, key=key, correlation_id=-2))

        assert int.from_bytes(data[:4], "big") == len(data) - 4
        assert decode_response(data[4:], version, key=key) == (-2, body)


def test_only_api_versions_has_no_tags_in_a_flexible_response_header() -> None:
    versions = response_parts(ApiVersionsResponse(), 3, key=ApiKey.API_VERSIONS, correlation_id=1)
    fetched = response_parts(FetchResponse(), 12, key=ApiKey.FETCH, correlation_id=1)

    # After the correlation id: error code, no keys, throttle time, tags.
    assert b"".join(versions)[8:] == bytes.fromhex("0000 01 00000000 00")
    # The header's tags first: throttle time, error code, session id, no topics, tags.
    assert b"".join(fetched)[8:] == bytes.fromhex("00 00000000 0000 00000000 01 00")


def test_records_are_parts_of_their_own() -> None:
    class FileRange:
        """Like a file range: a length without bytes."""

        def __len__(self) -> int:
            return 1_000_000_000

    batches: Any = FileRange()
    row = PartitionData(records=batches)
    topic = FetchableTopicResponse(topic_id=Uuid(b"0123456789abcdef"), partitions=[row])

    parts = response_parts(FetchResponse(responses=[topic]), 13, key=ApiKey.FETCH, correlation_id=1)

    assert sum(part is batches for part in parts) == 1
    assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4


def test_a_response_above_the_maximum_frame_size_is_refused() -> None:
    class FileRange:
        def __len__(self) -> int:
            return 0x7FFFFFF0

    batches: Any = FileRange()
    topic = FetchableTopicResponse(partitions=[PartitionData(records=batches)])

    with pytest.raises(NotEncodable, match="exceeds the maximum frame size"):
        response_parts(FetchResponse(responses=[topic]), 12, key=ApiKey.FETCH, correlation_id=1)


@pytest.mark.parametrize("size", range(16))
def test_a_response_cut_short_is_malformed(size: int) -> None:
    data = b"".join(refuse_api_versions(7, [(18, 0, 4)]))[4:]

    with pytest.raises(Malformed):
        decode_response(data[:size], 0, key=ApiKey.API_VERSIONS)


# ---- the response to an unsupported ApiVersions version


def test_an_api_versions_refusal_equals_kafkas() -> None:
    parts = refuse_api_versions(7, [(ApiKey.API_VERSIONS, 0, 4)])

    # A broker of Kafka 4.3 sent these bytes.
    assert b"".join(parts) == bytes.fromhex("00000010 00000007 0023 00000001 0012 0000 0004")


def test_a_refusal_is_read_as_version_0_whatever_the_request() -> None:
    rows = [(18, 0, 4), (0, 3, 13)]
    data = b"".join(refuse_api_versions(-1, rows))

    correlation_id, body = decode_response(data[4:], 0, key=ApiKey.API_VERSIONS)

    assert correlation_id == -1
    assert body.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in body.api_keys] == rows
