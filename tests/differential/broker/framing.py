"""Below the messages: lengths, headers, keys and versions that nobody speaks, bodies that are too short."""

from struct import pack

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.exchange import decode_response, encode_request
from barnabas.protocol.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from barnabas.protocol.messages.cluster import ApiVersionsRequest, MetadataRequest
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from barnabas.protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest
from barnabas.protocol.messages.group_offsets import OffsetCommitRequest, OffsetDeleteRequest
from barnabas.protocol.schema.json import to_json
from differential.broker.cluster import software
from differential.broker.talk import CLOSED, SILENT, Family, Talk
from support.wire.client import ConnectionClosed, WireClient

FRAMING = Family("framing")
CLIENT = b"\0\4wire"
QUIET_S = 1.0

# The APIs that a single broker is asked in the other stories.
BUILT = (
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 42, 43, 44, 47, 55,
    57, 60, 61, 68, 69, 74, 75,
)  # fmt: skip


def header(key: int, version: int, *, flexible: bool = False) -> bytes:
    return pack(">hhi", key, version, 7) + CLIENT + (b"\0" if flexible else b"")


def whole(body: object, version: int, key: ApiKey) -> bytes:
    """A request without its length."""
    return encode_request(body, version, key=key, correlation_id=7, client_id="wire")[4:]


def happens(talk: Talk, step: str, frame: bytes, key: ApiKey = ApiKey.API_VERSIONS, version: int = 0) -> None:
    """Send a frame; keep what happens: an answer, silence, or the end of the connection."""
    sends(talk, step, pack(">i", len(frame)) + frame, key, version)


def sends(talk: Talk, step: str, data: bytes, key: ApiKey = ApiKey.API_VERSIONS, version: int = 0) -> None:
    with WireClient(talk.address, timeout_s=QUIET_S) as client:
        client.send_raw(data)
        try:
            correlation_id, body = decode_response(client.read_frame(), version, key=key)
        except ConnectionClosed:
            talk.keep(step, CLOSED)
        except TimeoutError:
            talk.keep(step, SILENT)
        else:
            plain = to_json(body, version)
            if key is ApiKey.API_VERSIONS and body.error_code == 0:
                # Which keys there are is told in another story.
                plain = {"errorCode": 0}
            talk.keep(step, {"correlationId": correlation_id, "body": plain})


@FRAMING.story
def keys_and_versions(talk: Talk) -> None:
    for key in (-1, 4, 5, 6, 7, 58, 93, 999, 32_767):
        happens(talk, f"key {key}", header(key, 0))
    for key in BUILT:
        spoken = api(ApiKey(key))
        first, last = spoken.versions.first, spoken.last_stable
        for version in (last + 1, first - 1, -1):
            if ApiKey(key) is not ApiKey.API_VERSIONS and version not in (-1, last):
                happens(talk, f"{ApiKey(key).name} version {version}", header(key, version), ApiKey(key), 0)
    for key in (52, 53, 54, 56, 59, 62, 63, 67, 70, 73):
        happens(talk, f"of controllers: {ApiKey(key).name}", header(key, 0, flexible=True))


@FRAMING.story
def api_versions_of_the_future(talk: Talk) -> None:
    for version in (5, 99, 32_767, -1):
        happens(talk, f"version {version}", header(18, version))
        happens(talk, f"version {version} with a body", header(18, version, flexible=True) + b"\5wire\0021\0")
    with WireClient(talk.address) as client:
        client.send_frame(header(18, 99, flexible=True) + b"\5wire\0021\0")
        client.read_frame()
        answer = client.ask(software("wire", "1"), 3)
        talk.keep("the connection goes on", answer.error_code)


@FRAMING.story
def lengths(talk: Talk) -> None:
    sends(talk, "length zero", pack(">i", 0))
    sends(talk, "negative length", pack(">i", -1))
    sends(talk, "length over the limit", pack(">i", 104_857_601))
    sends(talk, "an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    for size in (1, 4, 7, 8, 9):
        happens(talk, f"{size} bytes", header(18, 0)[:size])
    good = pack(">i", len(header(18, 0))) + header(18, 0)
    sends(talk, "half a frame", good[:-3])


@FRAMING.story
def headers(talk: Talk) -> None:
    happens(talk, "no client id", pack(">hhih", 18, 0, 7, -1))
    happens(talk, "empty client id", pack(">hhih", 18, 0, 7, 0))
    happens(talk, "client id longer than the frame", pack(">hhih", 18, 0, 7, 300) + b"x")
    happens(talk, "client id of negative length", pack(">hhih", 18, 0, 7, -2))
    happens(talk, "client id that is no UTF-8", pack(">hhih", 18, 0, 7, 2) + b"\xff\xfe")
    tagged = pack(">hhi", 18, 3, 7) + CLIENT + b"\1\5\2ab" + b"\5wire\0021\0"
    happens(talk, "an unknown tag in the header", tagged, version=3)
    body = pack(">hhi", 18, 3, 7) + CLIENT + b"\0" + b"\5wire\0021" + b"\1\5\2ab"
    happens(talk, "an unknown tag in the body", body, version=3)
    negative = pack(">hhii", 18, 0, -5, 0)[:8] + CLIENT
    happens(talk, "negative correlation id", negative)


@FRAMING.story
def bodies(talk: Talk) -> None:
    good = whole(MetadataRequest(topics=[]), 4, ApiKey.METADATA)
    happens(talk, "good", good, ApiKey.METADATA, 4)
    happens(talk, "bytes after the body", good + b"garbage", ApiKey.METADATA, 4)
    happens(talk, "one byte short", good[:-1], ApiKey.METADATA, 4)
    happens(talk, "no body", header(3, 4), ApiKey.METADATA, 4)
    happens(talk, "a huge array", header(3, 4) + pack(">i", 2**31 - 1), ApiKey.METADATA, 4)
    happens(talk, "a negative array", header(3, 4) + pack(">i", -2) + b"\1", ApiKey.METADATA, 4)
    happens(talk, "null where none may be", header(3, 0) + pack(">i", -1), ApiKey.METADATA, 0)
    flexible = header(3, 12, flexible=True)
    happens(talk, "a varint without end", flexible + b"\xff" * 8, ApiKey.METADATA, 12)
    happens(talk, "a boolean of seven", header(3, 4) + pack(">ib", 0, 7), ApiKey.METADATA, 4)
    text = header(3, 4) + pack(">ih", 1, 2) + b"\xff\xfe" + b"\1"
    happens(talk, "a name that is no UTF-8", text, ApiKey.METADATA, 4)
    asked = whole(
        ApiVersionsRequest(client_software_name="wire", client_software_version="1"), 3, ApiKey.API_VERSIONS
    )
    happens(talk, "ApiVersions and more", asked + b"garbage", version=3)
    happens(talk, "ApiVersions cut off", asked[:-3], version=3)


@FRAMING.story
def null_names(talk: Talk) -> None:
    """Groups have names: null is none."""
    asked: dict[ApiKey, tuple[object, int]] = {
        # The request without names, and how much of it comes before the first one.
        ApiKey.OFFSET_COMMIT: (OffsetCommitRequest(topics=[]), 0),
        ApiKey.JOIN_GROUP: (JoinGroupRequest(protocols=[]), 0),
        ApiKey.HEARTBEAT: (HeartbeatRequest(), 0),
        ApiKey.LEAVE_GROUP: (LeaveGroupRequest(), 0),
        ApiKey.SYNC_GROUP: (SyncGroupRequest(assignments=[]), 0),
        ApiKey.DESCRIBE_GROUPS: (DescribeGroupsRequest(groups=[""]), 1),
        ApiKey.DELETE_GROUPS: (DeleteGroupsRequest(groups_names=[""]), 1),
        ApiKey.OFFSET_DELETE: (OffsetDeleteRequest(topics=[]), 0),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: (ConsumerGroupHeartbeatRequest(), 0),
        ApiKey.CONSUMER_GROUP_DESCRIBE: (ConsumerGroupDescribeRequest(group_ids=[""]), 1),
    }
    for key, (body, arrays) in asked.items():
        spoken = api(key).versions
        for version in dict.fromkeys((spoken.first, spoken.last)):
            happens(talk, f"{key.name} v{version}", _nulled(body, version, key, arrays), key, version)


def _nulled(body: object, version: int, key: ApiKey, arrays: int) -> bytes:
    """The request with null for its first text, which follows so many lengths of arrays."""
    flexible = version in api(key).flexible
    start = len(header(key, version, flexible=flexible)) + arrays * (1 if flexible else 4)
    data = whole(body, version, key)
    return data[:start] + (b"\0" + data[start + 1 :] if flexible else b"\xff\xff" + data[start + 2 :])


@FRAMING.story
def pipelining(talk: Talk) -> None:
    with WireClient(talk.address) as client:
        sent = [client.send(MetadataRequest(topics=[]), version) for version in (1, 5, 9, 12)]
        received = [client.receive(ApiKey.METADATA, version)[0] for version in (1, 5, 9, 12)]
        talk.keep("answers come in order", received == sent)
    with WireClient(talk.address) as client:
        client.send(MetadataRequest(topics=[]), 9)
        client.send_frame(header(999, 0))
        talk.keep("answered before the bad one", client.receive(ApiKey.METADATA, 9)[0])
        talk.keep("closed after it", client.is_closed(within_s=5))
