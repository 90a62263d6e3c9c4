import tracemalloc
from itertools import accumulate, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Malformed
from barnabas.protocol.exchange import FRAME_BYTES_MAX, SMALL_PIECE_BYTES, FrameDecoder
from support.wire.frames import frame

LARGE = bytes(range(256)) * 1000


def fed(decoder: FrameDecoder, *pieces: bytes) -> list[bytes]:
    return [found for piece in pieces for found in decoder.feed(piece)]


def in_pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def test_one_piece_with_several_frames_gives_them_in_order() -> None:
    decoder = FrameDecoder()

    assert decoder.feed(frame([b"one"]) + frame([b"two"]) + frame([b"three"])) == [b"one", b"two", b"three"]
    assert decoder.held == 0


def test_a_frame_is_returned_with_its_last_byte() -> None:
    decoder = FrameDecoder()
    stream = frame([b"request"])

    assert fed(decoder, *in_pieces(stream[:-1], 1)) == []
    assert decoder.held == len(stream) - 1
    assert decoder.feed(stream[-1:]) == [b"request"]
    assert decoder.held == 0


def test_the_start_of_the_next_frame_is_kept() -> None:
    decoder = FrameDecoder()
    second = frame([b"second"])

    assert decoder.feed(frame([b"first"]) + second[:6]) == [b"first"]
    assert decoder.held == 6
    assert decoder.feed(second[6:]) == [b"second"]


def test_a_length_may_be_torn() -> None:
    decoder = FrameDecoder()

    assert fed(decoder, b"\x00\x00", b"\x00", b"\x02a") == []
    assert decoder.feed(b"b\x00") == [b"ab"]
    assert decoder.held == 1


def test_an_empty_frame_is_a_frame() -> None:
    assert FrameDecoder().feed(frame([]) + frame([b""]) + frame([b"x"])) == [b"", b"", b"x"]


def test_nothing_in_gives_nothing_out() -> None:
    decoder = FrameDecoder()
    decoder.feed(b"\x00\x00")

    assert decoder.feed(b"") == []
    assert decoder.held == 2


def test_a_frame_may_be_as_large_as_the_limit_and_no_larger() -> None:
    assert FrameDecoder(limit=5).feed(frame([b"12345"])) == [b"12345"]
    with pytest.raises(Malformed, match=r"^frame: length 6 exceeds the limit of 5$"):
        FrameDecoder(limit=5).feed(frame([b"123456"]))


def test_the_default_limit_is_kafkas() -> None:
    just_allowed = FrameDecoder()

    assert just_allowed.feed(FRAME_BYTES_MAX.to_bytes(4, "big")) == []
    assert just_allowed.held == 4
    with pytest.raises(Malformed, match=r"length 104857601 exceeds the limit of 104857600"):
        FrameDecoder().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))


@pytest.mark.parametrize("length", [-1, -(2**31)])
def test_a_negative_length_is_refused(length: int) -> None:
    with pytest.raises(Malformed, match=rf"^frame: length {length} is negative$"):
        FrameDecoder().feed(length.to_bytes(4, "big", signed=True))


def test_a_bad_length_is_refused_as_soon_as_it_can_be_read() -> None:
    decoder = FrameDecoder(limit=100)

    assert fed(decoder, b"\x00", b"\x00", b"\x00") == []
    with pytest.raises(Malformed):
        decoder.feed(b"\x65")


def test_frames_before_a_bad_length_are_handed_out_first() -> None:
    decoder = FrameDecoder(limit=100)

    assert decoder.feed(frame([b"good"]) + frame([b"too"]) + b"\xff\xff\xff\xffmore") == [b"good", b"too"]

    assert decoder.broken is not None
    assert decoder.held == 0
    with pytest.raises(Malformed) as refused:
        decoder.feed(frame([b"good again"]))
    assert str(refused.value) == str(decoder.broken)


def test_a_broken_stream_stays_broken_and_keeps_nothing() -> None:
    decoder = FrameDecoder()
    with pytest.raises(Malformed) as first:
        decoder.feed(b"\xff\xff\xff\xff" + LARGE)

    for data in (b"", frame([b"fine"])):
        with pytest.raises(Malformed) as again:
            decoder.feed(data)
        assert str(again.value) == str(first.value)
    assert decoder.held == 0


@pytest.mark.parametrize("size", [1, 7, SMALL_PIECE_BYTES - 1, SMALL_PIECE_BYTES, SMALL_PIECE_BYTES + 1])
def test_a_large_frame_in_pieces_of_any_size_is_whole(size: int) -> None:
    decoder = FrameDecoder()

    assert fed(decoder, *in_pieces(frame([LARGE]) + frame([b"next"]), size)) == [LARGE, b"next"]


def test_small_and_large_pieces_may_follow_each_other() -> None:
    decoder = FrameDecoder()
    stream = frame([LARGE])
    cuts = accumulate([0, 3, 5000, 1, 1, 6000, 9000, 2, len(stream)])

    assert fed(decoder, *(stream[start:end] for start, end in pairwise(cuts))) == [LARGE]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_frame_in_small_pieces_costs_a_few_times_its_size(size: int) -> None:
    pieces = in_pieces(frame([LARGE]), size)
    decoder = FrameDecoder()
    frames: list[bytes] = []

    tracemalloc.start()
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert frames == [LARGE]
    # The merged pieces, the joined bytes and the frame; an object per byte would take eight times that.
    assert peak < 4 * len(LARGE)


def test_a_large_declared_length_allocates_nothing_in_advance() -> None:
    decoder = FrameDecoder()

    tracemalloc.start()
    try:
        decoder.feed(FRAME_BYTES_MAX.to_bytes(4, "big"))
        decoder.feed(b"not that much")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 10_000


@given(st.lists(st.binary(max_size=40), max_size=12), st.lists(st.integers(0, 60), max_size=30), st.data())
def test_any_cutting_of_a_stream_gives_the_same_frames(
    contents: list[bytes], sizes: list[int], data: st.DataObject
) -> None:
    stream = b"".join(frame([content]) for content in contents)
    end = data.draw(st.integers(0, len(stream)))
    cuts = [0, *(min(cut, end) for cut in accumulate(sizes)), end]
    decoder = FrameDecoder(limit=40)

    frames = fed(decoder, *(stream[start:stop] for start, stop in pairwise(cuts)))

    # The stream may stop inside a frame: the frames and the buffered bytes are the whole stream.
    assert frames == contents[: len(frames)]
    done = sum(4 + len(found) for found in frames)
    assert decoder.held == end - done
    assert len(frames) == len(contents) or decoder.held < 4 + len(contents[len(frames)])


@given(st.binary(max_size=200), st.lists(st.integers(1, 30), max_size=30))
def test_garbage_gives_the_same_in_pieces_as_at_once(garbage: bytes, sizes: list[int]) -> None:
    cuts = [0, *(min(cut, len(garbage)) for cut in accumulate(sizes)), len(garbage)]

    at_once = outcome([garbage])

    assert outcome([garbage[start:stop] for start, stop in pairwise(cuts)]) == at_once


def outcome(pieces: list[bytes]) -> tuple[list[bytes], int, str | None]:
    """The frames, the number of buffered bytes, and the error of the stream, if any."""
    decoder = FrameDecoder(limit=100_000)
    frames: list[bytes] = []
    for piece in pieces:
        try:
            frames += decoder.feed(piece)
        except Malformed:
            break
    return frames, decoder.held, None if decoder.broken is None else str(decoder.broken)


def test_a_large_frame_is_received_where_it_stays() -> None:
    decoder = FrameDecoder()
    stream = frame([LARGE])
    decoder.feed(stream[:100_000])

    room = decoder.room()
    assert room is not None
    room[:50_000] = stream[100_000:150_000]
    assert decoder.filled(50_000) == []
    assert decoder.held == 150_000
    room = decoder.room()
    assert room is not None
    assert len(room) == len(stream) - 150_000
    room[:] = stream[150_000:]

    assert decoder.filled(len(room)) == [LARGE]
    assert decoder.held == 0
    assert decoder.room() is None
    assert decoder.feed(frame([b"next"])) == [b"next"]


def test_bytes_fed_while_there_is_space_are_not_lost() -> None:
    decoder = FrameDecoder()
    stream = frame([LARGE]) + frame([b"second"]) + b"\x00"
    decoder.feed(stream[:100_000])
    assert decoder.room() is not None

    assert decoder.feed(stream[100_000:]) == [LARGE, b"second"]
    assert decoder.held == 1


def test_a_length_alone_gets_no_room() -> None:
    decoder = FrameDecoder()
    decoder.feed(FRAME_BYTES_MAX.to_bytes(4, "big") + bytes(1000))

    assert decoder.room() is None


def test_a_small_frame_needs_no_room() -> None:
    decoder = FrameDecoder()
    decoder.feed(frame([bytes(1000)])[:900])

    assert decoder.room() is None


@given(st.lists(st.binary(max_size=10) | st.integers(60_000, 70_000).map(bytes), max_size=6), st.randoms())
def test_room_or_not_the_frames_are_the_same(bodies: list[bytes], random: Random) -> None:
    decoder = FrameDecoder()
    stream = b"".join(frame([body]) for body in bodies)
    found, at = [], 0
    while at < len(stream):
        room = decoder.room() if random.random() < 0.7 else None
        size = random.randint(1, 30_000)
        if room is None:
            found += decoder.feed(stream[at : at + size])
        else:
            size = min(size, len(room))
            room[:size] = stream[at : at + size]
            found += decoder.filled(size)
        at += size

    assert found == bodies


def test_missing_bytes_of_a_frame_are_reported() -> None:
    decoder = FrameDecoder()
    assert decoder.missing == 0
    decoder.feed(b"\x00\x00\x00")
    assert decoder.missing == 0, "its length is not known"
    decoder.feed(b"\x64abc")
    assert decoder.missing == 97
    assert decoder.feed(bytes(97) + b"\x00\x01\x00\x00" + bytes(8192)) == [b"abc" + bytes(97)]
    assert decoder.missing == 65536 - 8192
    room = decoder.room()
    assert room is not None
    assert decoder.filled(1000) == []
    assert decoder.missing == 65536 - 8192 - 1000
    assert len(decoder.filled(65536 - 8192 - 1000)) == 1
    assert decoder.missing == 0
