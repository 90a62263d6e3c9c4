"""Mutated requests for a live broker, made from recorded requests of real clients: the same for each seed.

Every version of every API of the broker is there: what no client sent is built from its declaration. Half of
the mutations know the structure of a request (fields, lists, records with a new checksum), the others are
blind (bits, lengths, cuts, two requests spliced). Some requests stay as they are, so that the broker has
topics, groups and transactions to be wrong about.
"""

import random
from collections import deque
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from barnabas.base.errors import BarnabasError
from barnabas.base.ids import Uuid
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.exchange import Request, decode_request, encode_request
from barnabas.protocol.schema.codec import NotEncodable
from barnabas.protocol.schema.fields import Field, Kind
from barnabas.protocol.schema.layout import Layout, message_layout, nested_layout
from barnabas.records.builder import build_batch
from barnabas.records.header import ATTRIBUTES_AT, BATCH_LENGTH_AT, CRC_AT, HEADER_SIZE, Codec, crc32c_of
from barnabas.server.handlers.table import APIS
from support.fuzz.mutations import mutate
from support.fuzz.words import Words
from support.wire.messages import random_message
from support.wire.recorded_requests import load_recorded
from support.wire.requests import Producer, batch

BATCH = 40
# Requests that were encoded lately, for the blind mutations.
_RECENT_MAX = 3000
_BUILT_EACH = 2
_BUILT_BYTES_MAX = 1500
_CLIENT_ID = "fuzz"
# So that topics cost a broker neither its disk nor its descriptors.
PARTITIONS_MAX = 12
TOPICS_AT_ONCE_MAX = 20
_ITEMS_MAX = 300
_ITEMS_CHANGED_MAX = 5
FRAME_BYTES_MAX = 1 << 20
_HEADER = Struct(">hhi")
_SIZE = Struct(">i")
_CORRELATION_AT = 4
_INT_BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64, Kind.UINT16: 16, Kind.UINT32: 32}
# Frames whose length says something else than their size, and the bytes that then follow.
_WRONG_SIZES = (-1, -(2**31), 2**31 - 1, 104_857_601, 0, 1, 7, 8, 100_000)
_RESTRAINED = (
    *(ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS),
    *(ApiKey.DELETE_TOPICS, ApiKey.UNREGISTER_BROKER),
)
# Behind the header, which names the client.
_NAMES_AT = 14
_OWN_BROKER_ID = 1
# Kafka lets clients delete the topics of offsets and transactions. Then there are no groups for a while.
_RARELY_DELETED = (b"__", b"fuzz")
_DELETED_ONE_OF = 100


class Batch(NamedTuple):
    """Frames without lengths, to be sent over one connection; `end`, if not empty, breaks it."""

    number: int
    frames: list[bytes]
    end: bytes


class RequestMutator:
    """Batches in order: they depend on the seed, and on the ids that the broker gave, which `words` has."""

    def __init__(self, seed: int, words: Words) -> None:
        self._seed = seed
        self._words = words
        self._rng = random.Random()
        self._seeds = _seeds()
        self._versions = sorted(self._seeds)
        self._harmless = self._seeds[ApiKey.API_VERSIONS, 0][0]
        self._recent: deque[bytes] = deque(maxlen=_RECENT_MAX)
        self._correlation = 0
        rng = random.Random(seed)
        for version in self._versions:
            self._recent += [self._reworded(rng, frame) for frame in self._seeds[version]]

    @property
    def covered(self) -> set[tuple[int, int]]:
        """The APIs and versions that mutations begin with."""
        return set(self._versions)

    def batch(self, number: int) -> Batch:
        rng = self._rng
        rng.seed(self._seed * 1_000_000_007 + number)
        frames = [self._numbered(rng, self._bounded(self._frame(rng))) for _ in range(BATCH)]
        end = self._broken_end(rng) if rng.random() < 0.1 else b""
        return Batch(number, frames, end)

    # Requests

    def _frame(self, rng: random.Random) -> bytes:
        dice = rng.random()
        if dice < 0.5:
            frame = self._reworded(rng, rng.choice(self._seeds[rng.choice(self._versions)]))
            if dice < 0.4:
                frame = self._restructured(rng, frame)
            self._recent.append(frame)
            return frame
        frame = self._recent[rng.randrange(len(self._recent))]
        if dice < 0.54:
            return _other_version(rng, frame)
        if dice < 0.58:
            return _spliced(rng, frame, self._recent[rng.randrange(len(self._recent))])
        return mutate(rng, frame)

    def _reworded(self, rng: random.Random, frame: bytes) -> bytes:
        """Put words of ours where the request has names and ids."""
        request = decode_request(frame)
        for place in _places(request):
            if rng.random() < 0.9:
                place.reword(rng, self._words)
            if place.field.kind is Kind.RECORDS and place.value is not None and rng.random() < 0.8:
                transaction = getattr(request.body, "transactional_id", None)
                place.value = _some_batch(rng, self._words.producers.get(transaction))
        self._words.link(rng, request.body)
        return _encoded(request, frame)

    def _restructured(self, rng: random.Random, frame: bytes) -> bytes:
        request = decode_request(frame)
        places = _places(request)
        if not places:
            return frame
        for _ in range(rng.choice((1, 1, 2, 3))):
            rng.choice(places).change(rng, self._words)
        return _encoded(request, frame)

    def _numbered(self, rng: random.Random, frame: bytes) -> bytes:
        """Give it a correlation id of its own, nearly always."""
        self._correlation = (self._correlation + 1) & 0x3FFFFFFF
        if len(frame) < _HEADER.size or rng.random() < 0.01:
            return frame
        return frame[:_CORRELATION_AT] + _SIZE.pack(self._correlation) + frame[_HEADER.size :]

    def _bounded(self, frame: bytes) -> bytes:
        """Another request, if this one would harm as it also harms Kafka."""
        key = int.from_bytes(frame[:2], "big")
        if len(frame) > FRAME_BYTES_MAX or (key in _RESTRAINED and _is_too_much(key, frame)):
            return self._harmless
        return frame

    def _broken_end(self, rng: random.Random) -> bytes:
        frame = self._recent[rng.randrange(len(self._recent))]
        size = rng.choice((*_WRONG_SIZES, len(frame) - 1, len(frame) + 1, len(frame) // 2))
        return _SIZE.pack(size) + frame[: rng.randrange(len(frame) + 1)]


def _is_too_much(key: int, frame: bytes) -> bool:
    """Whether a request creates very many partitions, deletes topics of others, or unregisters the broker."""
    if key == ApiKey.DELETE_TOPICS:
        named = any(name in frame[_NAMES_AT:] for name in _RARELY_DELETED)
        return named and sum(frame) % _DELETED_ONE_OF != 0
    try:
        body = decode_request(frame).body
    except BarnabasError:
        return False
    if key == ApiKey.UNREGISTER_BROKER:
        return bool(body.broker_id == _OWN_BROKER_ID)
    return len(body.topics) > TOPICS_AT_ONCE_MAX or any(
        getattr(topic, "num_partitions", getattr(topic, "count", 0)) > PARTITIONS_MAX for topic in body.topics
    )


def framed(frame: bytes) -> bytes:
    return _SIZE.pack(len(frame)) + frame


def header_of(frame: bytes) -> tuple[int, int, int] | None:
    """Key, version and correlation id, if there are any."""
    return _HEADER.unpack_from(frame) if len(frame) >= _HEADER.size else None  # type: ignore[return-value]


# Where mutations begin


def _seeds() -> dict[tuple[int, int], list[bytes]]:
    """Frames by API and version: the recorded ones, and some that are built."""
    spoken = {row.key: row.versions for row in APIS}
    found: dict[tuple[int, int], list[bytes]] = {
        (key, version): [] for key, versions in spoken.items() for version in versions
    }
    for one in load_recorded():
        for version in spoken[ApiKey(one.key)]:
            frame = one.frame if version == one.version else _translated(one.frame, version)
            # A version that nobody sent gets the requests of the others, as far as it can say the same.
            if frame is not None and (
                version == one.version or (one.key, version) not in recorded_versions()
            ):
                found[one.key, version].append(frame)
    for (key, version), frames in found.items():
        rng = random.Random(f"{key} {version}")
        frames += [_built(ApiKey(key), version, rng) for _ in range(_BUILT_EACH)]
    return found


@cache
def recorded_versions() -> set[tuple[int, int]]:
    return {(one.key, one.version) for one in load_recorded()}


def _translated(frame: bytes, version: int) -> bytes | None:
    request = decode_request(frame)
    try:
        return encode_request(
            request.body, version, key=request.api.key, correlation_id=1, client_id=request.client_id
        )[4:]
    except NotEncodable:
        return None


def _built(key: ApiKey, version: int, rng: random.Random) -> bytes:
    while True:
        body = random_message(api(key).request, version, rng, unknown_tags=rng.random() < 0.2)
        frame = encode_request(body, version, key=key, correlation_id=1, client_id=_CLIENT_ID)[4:]
        if len(frame) <= _BUILT_BYTES_MAX:
            return frame


def _some_batch(rng: random.Random, transactional: tuple[int, int] | None) -> bytes:
    if transactional is not None and rng.random() < 0.8:
        id_, epoch = transactional
        sequence = rng.choice((0, 0, 0, 1, 2))
        records = [(1_767_225_600_000, None, b"v", ())]
        return build_batch(
            records, producer_id=id_, producer_epoch=epoch, base_sequence=sequence, transactional=True
        )
    if rng.random() < 0.7:
        codec = rng.choice((Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD))
        return batch(b"v" * rng.randrange(100), key=rng.choice((None, b"k")), codec=codec)
    producer = Producer(rng.choice((0, 1, 2, 1000, 1001)), rng.choice((0, 0, 1)))
    return batch(b"v", producer=producer, sequence=rng.choice((0, 0, 1, 2)))


def _encoded(request: Request, instead: bytes) -> bytes:
    """The frame of a changed request; `instead` if it cannot be written in its version."""
    key, version = request.api.key, request.version
    try:
        return encode_request(request.body, version, key=key, correlation_id=1, client_id=_CLIENT_ID)[4:]
    except (NotEncodable, ValueError, OverflowError, TypeError, AttributeError):
        return instead


# Mutations that know the structure


class _Place:
    """One field of one struct of a request."""

    __slots__ = ("field", "key", "layout", "owner")

    def __init__(self, key: int, owner: Any, field: Field, layout: Layout) -> None:
        self.key = key
        self.owner = owner
        self.field = field
        self.layout = layout

    @property
    def value(self) -> Any:
        return getattr(self.owner, self.field.name)

    @value.setter
    def value(self, value: Any) -> None:
        try:
            setattr(self.owner, self.field.name, value)
        except (TypeError, OverflowError):
            # The class of a compiled message takes only what its field can hold.
            return

    def reword(self, rng: random.Random, words: Words) -> None:
        chosen = words.choose(rng, self.key, self.field.name)
        if chosen is None:
            return
        if self.field.kind is Kind.ARRAY:
            if self.value and not hasattr(type(self.value[0]), "__schema__"):
                self.value = [words.choose(rng, self.key, self.field.name)[0] for _ in self.value]  # type: ignore[index]
        elif self.field.kind is not Kind.STRUCT:
            self.value = chosen[0]

    def change(self, rng: random.Random, words: Words) -> None:
        kind, value = self.field.kind, self.value
        if rng.random() < 0.4:
            self.reword(rng, words)
        elif self.layout.version in self.field.null and rng.random() < 0.1:
            self.value = None
        elif kind in _INT_BITS:
            self.value = _other_int(rng, value, _INT_BITS[kind])
        elif kind is Kind.BOOL:
            self.value = not value
        elif kind is Kind.UUID:
            self.value = Uuid(rng.randbytes(16)) if rng.random() < 0.5 else Uuid(bytes(16))
        elif kind is Kind.STRING:
            self.value = _other_text(rng, value or "")
        elif kind is Kind.BYTES:
            self.value = mutate(rng, bytes(value or b""))
        elif kind is Kind.RECORDS:
            self.value = _other_records(rng, bytes(value or b""))
        elif kind is Kind.ARRAY:
            self.value = _other_list(rng, value or [])


def _places(request: Request) -> list[_Place]:
    """Every field of a request, and of the structs in it."""
    found: list[_Place] = []
    layout = message_layout(request.api.request, request.version)
    _add_places(request.api.key, request.body, layout, found)
    return found


def _add_places(key: int, owner: Any, layout: Layout, found: list[_Place]) -> None:
    for field in (*layout.plain, *layout.tagged):
        found.append(_Place(key, owner, field, layout))
        value = getattr(owner, field.name)
        if value is None:
            continue
        if field.kind is Kind.STRUCT:
            _add_places(key, value, nested_layout(layout, field), found)
        elif field.kind is Kind.ARRAY and field.item is not None and field.item.kind is Kind.STRUCT:
            nested = nested_layout(layout, field.item)
            for item in value[:_ITEMS_CHANGED_MAX]:
                _add_places(key, item, nested, found)


def _other_int(rng: random.Random, value: int, bits: int) -> int:
    top = 2 ** (bits - 1)
    dice = rng.random()
    if dice < 0.3:
        return max(-top, min(top - 1, value + rng.choice((-1, 1))))
    if dice < 0.6:
        return rng.choice((-top, 1 - top, -2, -1, 0, 1, 2, top - 2, top - 1))
    return rng.randint(-top, top - 1) if dice < 0.8 else rng.randrange(10)


def _other_text(rng: random.Random, value: str) -> str:
    dice = rng.random()
    if dice < 0.3:
        return value + rng.choice(("x", "0", "\0", "ü", "🐙", " ", "/", "..", "\n"))
    if dice < 0.5:
        return value[: rng.randrange(len(value) + 1)]
    if dice < 0.7:
        return value * rng.choice((2, 3, 50))
    return rng.choice(("", "a", "\x7f", "null", "%s", "{}", "k" * 255, "k" * 32_767, "é" * 16_383))[:32_767]


def _other_list(rng: random.Random, items: list[Any]) -> list[Any]:
    dice = rng.random()
    if dice < 0.2 or not items:
        return []
    if dice < 0.5:
        return [*items, rng.choice(items)]
    if dice < 0.6:
        return items[:_ITEMS_MAX] * rng.choice((2, 3, _ITEMS_MAX // len(items[:_ITEMS_MAX])))
    if dice < 0.8:
        at = rng.randrange(len(items))
        return items[:at] + items[at + 1 :]
    return rng.sample(items, len(items))


def _other_records(rng: random.Random, records: bytes) -> bytes:
    """Damage a batch, and often make its length and checksum right again."""
    damaged = mutate(rng, records)
    if rng.random() < 0.1:
        return records + damaged
    if len(damaged) < HEADER_SIZE or rng.random() < 0.2:
        return damaged
    whole = bytearray(damaged)
    whole[BATCH_LENGTH_AT : BATCH_LENGTH_AT + 4] = _SIZE.pack(len(whole) - BATCH_LENGTH_AT - 4)
    whole[CRC_AT : CRC_AT + 4] = crc32c_of(whole, ATTRIBUTES_AT, len(whole)).to_bytes(4, "big")
    return bytes(whole)


# Blind mutations; flips, cuts and wrong lengths are in support.fuzz.mutations


def _other_version(rng: random.Random, frame: bytes) -> bytes:
    """Another version of its API, or another API."""
    key, version, _ = _HEADER.unpack_from(frame)
    dice = rng.random()
    if dice < 0.6:
        version += rng.choice((-2, -1, 1, 2))
    elif dice < 0.8:
        key = rng.randrange(100)
    elif dice < 0.9:
        key, version = rng.randrange(95), rng.randrange(14)
    else:
        key, version = rng.choice((-1, 32_767, -32_768, 1000)), rng.choice((-1, 32_767, 0))
    return _HEADER.pack(key, max(-32_768, version), 0) + frame[_HEADER.size :]


def _spliced(rng: random.Random, first: bytes, second: bytes) -> bytes:
    return first[: rng.randrange(_HEADER.size, len(first) + 1)] + second[rng.randrange(len(second) + 1) :]
