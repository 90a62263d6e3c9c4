"""Decoding and encoding in steps gives the same result as in one call, within limits."""

import random
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from barnabas.base.errors import Malformed
from barnabas.protocol.messages.group_admin import (
    DescribeGroupsRequest,
    ListedGroup,
    ListGroupsResponse,
)
from barnabas.protocol.messages.group_offsets import OffsetFetchRequest
from barnabas.protocol.schema import pieces
from barnabas.protocol.schema.codec import NotEncodable, decode, encode, stepped_decoder
from barnabas.protocol.schema.decoder import STEP_ITEMS
from barnabas.protocol.schema.fields import Kind
from barnabas.protocol.schema.layout import message_layout
from barnabas.protocol.schema.pieces import ResponsePieces
from barnabas.protocol.wire import ITEMS_MAX, UNKNOWN_TAGS_MAX
from support.wire.messages import all_versions, random_message

pytestmark = pytest.mark.kernel

SAMPLES = 3


def run(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    """The result of a generator and its number of steps."""
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, taken
        taken += 1


def samples() -> Iterator[tuple[type, int, Any]]:
    for cls, version in all_versions():
        rng = random.Random(f"steps {cls.__name__} {version}")
        for _ in range(SAMPLES):
            yield cls, version, random_message(cls, version, rng)


def test_a_stepped_decoder_reads_the_same_as_a_plain_one() -> None:
    for cls, version, message in samples():
        data = encode(message, version)

        read, _ = run(stepped_decoder(cls, version)(b"header" + data, 6))

        assert read[:2] == (message, 6 + len(data)), (cls, version)


def test_a_stepped_decoder_refuses_the_same_as_a_plain_one() -> None:
    for cls, version, message in samples():
        data = encode(message, version)
        for size in {len(data) // 2, len(data) - 1} - {-1, len(data)}:
            with pytest.raises(Malformed):
                decode(cls, version, data[:size])
            with pytest.raises(Malformed):
                run(stepped_decoder(cls, version)(data[:size], 0))


def test_a_list_encoded_in_pieces_equals_one_encoded_at_once() -> None:
    lists = 0
    for cls, version, message in samples():
        for field in message_layout(cls, version).plain:
            items = getattr(message, field.name)
            if field.kind is not Kind.ARRAY or items is None or field.item is None:
                continue
            if field.item.kind.is_fixed:
                continue
            encoder = ResponsePieces(cls, version, field.name)
            run(encoder.add(items[:1]))
            run(encoder.add(items[1:]))

            assert b"".join(map(bytes, encoder.parts(message))) == encode(message, version), (cls, version)
            lists += 1
    assert lists > 1_000


def test_a_long_list_takes_one_step_per_step_items() -> None:
    names = [f"group-{number}" for number in range(10 * STEP_ITEMS)]
    data = encode(DescribeGroupsRequest(groups=names), 6)

    (request, _, items), taken = run(stepped_decoder(DescribeGroupsRequest, 6)(data, 0))

    assert request.groups == names
    assert items == len(names)
    assert taken == 10

    encoder = ResponsePieces(ListGroupsResponse, 5, "groups")
    rows = [ListedGroup(group_id=name, protocol_type="", group_state="", group_type="") for name in names]
    _, taken = run(encoder.add(rows))
    assert taken == 10
    assert len(encoder.parts(ListGroupsResponse())) < 20


def test_more_items_than_the_limit_are_refused_before_they_are_read() -> None:
    data = encode(OffsetFetchRequest(group_id="", topics=[]), 5)[:-4] + (ITEMS_MAX + 1).to_bytes(4, "big")

    with pytest.raises(Malformed, match=f"more than {ITEMS_MAX} items in one message"):
        run(stepped_decoder(OffsetFetchRequest, 5)(data + bytes(16 * ITEMS_MAX), 0))


def test_numbers_count_as_items() -> None:
    """One call reads a whole array of numbers, so the limit cannot be checked between steps."""
    topics = b"\x00\x00\x00\x01" + b"\x00\x01t" + (ITEMS_MAX + 1).to_bytes(4, "big")
    data = encode(OffsetFetchRequest(group_id="", topics=[]), 5)[:-4] + topics

    with pytest.raises(Malformed, match="more than"):
        run(stepped_decoder(OffsetFetchRequest, 5)(data + bytes(4 * ITEMS_MAX + 4), 0))


@pytest.mark.parametrize("count", [UNKNOWN_TAGS_MAX, UNKNOWN_TAGS_MAX + 1])
def test_unknown_tagged_fields_have_a_limit(count: int) -> None:
    message = DescribeGroupsRequest(groups=[], unknown_tags=tuple((tag + 100, b"") for tag in range(count)))
    data = encode(message, 6)

    if count > UNKNOWN_TAGS_MAX:
        with pytest.raises(Malformed, match=f"{count} fields exceed the maximum of {UNKNOWN_TAGS_MAX}"):
            decode(DescribeGroupsRequest, 6, data)
        with pytest.raises(Malformed):
            run(stepped_decoder(DescribeGroupsRequest, 6)(data, 0))
    else:
        assert decode(DescribeGroupsRequest, 6, data)[0] == message


def test_a_response_above_the_size_limit_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "RESPONSE_BYTES_MAX", 100_000)
    encoder = ResponsePieces(ListGroupsResponse, 5, "groups")
    row = ListedGroup(group_id="g" * 100, protocol_type="", group_state="", group_type="")

    with pytest.raises(NotEncodable, match="exceeds 100000 bytes"):
        run(encoder.add([row] * 10_000))
