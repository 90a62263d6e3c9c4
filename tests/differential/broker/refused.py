"""Produce: batches that are wrong in themselves, or that the topic does not take."""

from barnabas.records.header import Codec
from differential.broker.batches import (
    MAGIC_AT,
    batch,
    patched,
    with_attributes,
    with_count,
    with_last_offset_delta,
)
from differential.broker.offsets import MAX_TIMESTAMP, list_offsets
from differential.broker.sending import fetch, produce
from differential.broker.talk import Family, Talk

REFUSED = Family("refused-records")
DAY_MS = 86_400_000


def ill_framed(good: bytes) -> dict[str, bytes]:
    """Wrong before anybody looks inside. Null is not among them: Kafka never answers it."""
    return {
        "empty": b"",
        "two batches": good + good,
        "a batch and garbage": good + b"\0" * 7,
        "a batch and half of one": good + good[:70],
        "half a batch": good[:70],
        "less than a header": good[:20],
        "only zeros": b"\0" * 61,
        "bad checksum": patched(good, 30, b"\1", sign=False),
        "length too large": patched(good, 8, b"\0\1\0\0", sign=False),
        "length negative": patched(good, 8, b"\xff\0\0\0", sign=False),
        "length zero": patched(good, 8, b"\0\0\0\0", sign=False),
        "magic 0": patched(good, MAGIC_AT, b"\0"),
        "magic 1": patched(good, MAGIC_AT, b"\1"),
        "magic 3": patched(good, MAGIC_AT, b"\3"),
        "magic -1": patched(good, MAGIC_AT, b"\xff"),
    }


def odd_headers(good: bytes) -> dict[str, bytes]:
    """Headers that say something else than the records, or than a producer may."""
    at_ms = int.from_bytes(good[27:35], "big")
    return {
        "count too large": with_count(good, 3),
        "count too small": with_count(good, 1),
        "count of zero": with_count(good, 0),
        "count negative": with_count(good, -1),
        "count and last offset delta too large": with_count(with_last_offset_delta(good, 2), 3),
        "count and last offset delta too small": with_count(with_last_offset_delta(good, 0), 1),
        "last offset delta too large": with_last_offset_delta(good, 5),
        "last offset delta too small": with_last_offset_delta(good, 0),
        "last offset delta negative": with_last_offset_delta(good, -1),
        "a control batch": batch(b"\0\0\0\0\0\0", at_ms=at_ms, keys=[b"\0\0\0\1"], control=True),
        "unknown attributes": with_attributes(good, 0x100),
        "a delete horizon": with_attributes(good, 0x40),
        "append time from a client": with_attributes(good, 0x08),
        "base offset is not zero": patched(good, 0, (77).to_bytes(8, "big"), sign=False),
        "leader epoch is set": patched(good, 12, (5).to_bytes(4, "big"), sign=False),
        "base timestamp is after the first": patched(good, 27, (at_ms + 5).to_bytes(8, "big")),
        "maximum timestamp is too low": patched(good, 35, (at_ms - 500).to_bytes(8, "big")),
        "maximum timestamp is too high": patched(good, 35, (at_ms + 500).to_bytes(8, "big")),
        "rubbish for records": patched(good, 61, b"\xff\xff\xff"),
        "a record that claims too much": patched(good, 61, b"\x7e"),
    }


def packed_wrongly(packed: bytes) -> dict[str, bytes]:
    return {
        "packed, count too large": with_count(packed, 3),
        "packed, count too small": with_count(packed, 1),
        "packed, last offset delta too large": with_last_offset_delta(packed, 5),
        "packed, count and last offset delta too large": with_count(with_last_offset_delta(packed, 2), 3),
        "packed, rubbish inside": patched(packed, 70, b"\xff\xff\xff"),
        "packed, cut off inside": patched(packed[:-6], 8, (len(packed) - 18).to_bytes(4, "big")),
    }


def put_each(talk: Talk, name: str, cases: dict[str, bytes]) -> None:
    """Each case has a partition of its own, and three versions; then what is stored is read back."""
    topic_id = talk.create(name, len(cases))
    for partition, (step, records) in enumerate(cases.items()):
        talk.same(step, produce(name, records, topic_id=topic_id, partition=partition), [3, 8, 13])
        talk.ask(f"{step}: stored", fetch(name, topic_id=topic_id, partition=partition))


@REFUSED.story
def records_that_are_no_batch(talk: Talk) -> None:
    put_each(talk, "ill-framed", ill_framed(batch(b"one", b"two", at_ms=talk.base_ms)))


@REFUSED.story
def headers_that_lie(talk: Talk) -> None:
    put_each(talk, "odd-headers", odd_headers(batch(b"one", b"two", at_ms=talk.base_ms)))


@REFUSED.story
def compressed_records_that_are_wrong(talk: Talk) -> None:
    put_each(talk, "packed", packed_wrongly(batch(b"one", b"two", at_ms=talk.base_ms, codec=Codec.GZIP)))


@REFUSED.story
def records_too_large(talk: Talk) -> None:
    topic_id = talk.create("small", max_message_bytes=200)
    talk.same("too large", produce("small", batch(b"x" * 300, at_ms=talk.base_ms), topic_id=topic_id))
    fits = batch(b"x" * 100, at_ms=talk.base_ms)
    talk.ask(
        "the second too large",
        produce("small", fits + batch(b"x" * 300, at_ms=talk.base_ms), topic_id=topic_id),
    )
    talk.ask("two that fit", produce("small", fits + fits, topic_id=topic_id))
    exact = batch(b"x" * (200 - len(batch(b"", at_ms=talk.base_ms)) - 2), at_ms=talk.base_ms)
    talk.keep("the size that is just allowed", len(exact) <= 200)
    talk.ask("just allowed", produce("small", exact, topic_id=topic_id))
    default_id = talk.create("default-size")
    talk.ask(
        "over the default",
        produce("default-size", batch(b"x" * 1_048_600, at_ms=talk.base_ms), topic_id=default_id),
    )
    talk.ask(
        "below it", produce("default-size", batch(b"x" * 1_048_000, at_ms=talk.base_ms), topic_id=default_id)
    )


@REFUSED.story
def times_out_of_bounds(talk: Talk) -> None:
    topic_id = talk.create(
        "times", message_timestamp_before_max_ms=DAY_MS, message_timestamp_after_max_ms=DAY_MS
    )
    old = batch(b"one", b"two", at_ms=talk.base_ms - 2 * DAY_MS)
    talk.same("too old", produce("times", old, topic_id=topic_id), [3, 8, 13])
    packed = batch(b"one", b"two", at_ms=talk.base_ms - 2 * DAY_MS, codec=Codec.LZ4)
    talk.ask("too old, compressed", produce("times", packed, topic_id=topic_id))
    ahead = batch(b"one", b"two", at_ms=talk.base_ms + 2 * DAY_MS)
    talk.same("too far ahead", produce("times", ahead, topic_id=topic_id), [3, 8, 13])
    default_id = talk.create("default-times")
    talk.ask(
        "a day ahead, by default",
        produce("default-times", batch(b"one", at_ms=talk.base_ms + DAY_MS), topic_id=default_id),
    )
    talk.ask("in 1970, by default", produce("default-times", batch(b"one", at_ms=5), topic_id=default_id))
    no_time = patched(patched(batch(b"one", at_ms=0), 27, b"\xff" * 8), 35, b"\xff" * 8)
    talk.ask("without a time", produce("default-times", no_time, topic_id=default_id))
    good = batch(b"one", b"two", at_ms=talk.base_ms)
    lying = patched(good, 35, (talk.base_ms - 500).to_bytes(8, "big"))
    talk.ask("a maximum that is not the maximum", produce("default-times", lying, topic_id=default_id))
    talk.ask("read back", fetch("default-times", topic_id=default_id))
    talk.ask("read back what is a week later", fetch("default-times", 2, topic_id=default_id))


def at_time(at_ms: int, *values: bytes) -> bytes:
    """A batch of a time that builders refuse."""
    time = at_ms.to_bytes(8, "big", signed=True)
    return patched(patched(batch(*values, at_ms=0), 27, time), 35, time)


@REFUSED.story
def times_before_1970(talk: Talk) -> None:
    topic_id = talk.create("before-1970")
    for at_ms in (-2, -1_000, -(2**62), -(2**63)):
        talk.ask(f"at {at_ms}", produce("before-1970", at_time(at_ms, b"one"), topic_id=topic_id))
    talk.ask("the latest of these", list_offsets("before-1970", MAX_TIMESTAMP), 7)
    talk.ask("none of them is of 1970", list_offsets("before-1970", 0), 7)
    talk.ask("now", produce("before-1970", batch(b"two", at_ms=talk.base_ms), topic_id=topic_id))
    talk.ask("at -2 again", produce("before-1970", at_time(-2, b"three"), topic_id=topic_id))
    talk.ask("the latest", list_offsets("before-1970", MAX_TIMESTAMP), 7)
    talk.ask("the first since 1970", list_offsets("before-1970", 0), 7)
    talk.ask("read back", fetch("before-1970", topic_id=topic_id))
    bounded_id = talk.create("bounded-1970", message_timestamp_before_max_ms=DAY_MS)
    talk.ask("too old", produce("bounded-1970", at_time(-2, b"one"), topic_id=bounded_id))
    talk.ask("without a time", produce("bounded-1970", at_time(-1, b"one"), topic_id=bounded_id))
    compacted_id = talk.create("compacted-1970", cleanup_policy="compact")
    keyed = patched(batch(b"one", at_ms=0, keys=[b"key"]), 27, (-2).to_bytes(8, "big", signed=True))
    talk.ask("compacted", produce("compacted-1970", keyed, topic_id=compacted_id))


@REFUSED.story
def keys_of_compacted_topics(talk: Talk) -> None:
    topic_id = talk.create("compacted", cleanup_policy="compact")
    bare = batch(b"one", b"two", at_ms=talk.base_ms, keys=[b"key", None])
    talk.same("a key is missing", produce("compacted", bare, topic_id=topic_id), [3, 7, 8, 13])
    none = batch(b"one", b"two", b"three", at_ms=talk.base_ms, keys=[None, None, None], codec=Codec.SNAPPY)
    talk.ask("all keys are missing, compressed", produce("compacted", none, topic_id=topic_id))
    empty = batch(b"one", at_ms=talk.base_ms, keys=[b""])
    talk.ask("an empty key", produce("compacted", empty, topic_id=topic_id))
    talk.ask("a tombstone", produce("compacted", batch(None, at_ms=talk.base_ms), topic_id=topic_id))
