"""Produce: acks, codecs, times, and places that are not there. Batches that are wrong are in refused.py."""

from barnabas.protocol.messages.produce import PartitionProduceData
from barnabas.records.header import Codec
from differential.broker.batches import batch, patched, with_attributes
from differential.broker.cluster import NO_TOPIC
from differential.broker.offsets import LATEST, list_offsets
from differential.broker.sending import fetch, produce
from differential.broker.talk import Family, Talk

PRODUCE = Family("produce")


@PRODUCE.story
def plain_records(talk: Talk) -> None:
    topic_id = talk.create("plain")
    records = batch(b"one", b"two", at_ms=talk.base_ms)
    for acks in (1, -1):
        talk.same(f"acks {acks}", produce("plain", records, topic_id=topic_id, acks=acks))
    for acks in (2, -2):
        talk.same(f"acks {acks}", produce("plain", records, topic_id=topic_id, acks=acks), [3, 9, 13])
    for version in (3, 9, 13):
        talk.tell(produce("plain", records, topic_id=topic_id, acks=0), version)
    talk.ask("the end after three without acks", list_offsets("plain", LATEST))
    talk.ask("read back", fetch("plain", 40, topic_id=topic_id))


@PRODUCE.story
def acks_zero_and_an_error(talk: Talk) -> None:
    talk.create("no-acks")
    good = batch(b"one", at_ms=talk.base_ms)
    talk.tell(produce("nobody-made-this", good, acks=0), 9)
    talk.ask("after an unknown topic", list_offsets("no-acks", LATEST))
    talk.tell(produce("no-acks", patched(good, 20, b"\0", sign=False), acks=0), 9)
    talk.ask("after a bad checksum", list_offsets("no-acks", LATEST))


@PRODUCE.story
def every_codec(talk: Talk) -> None:
    topic_id = talk.create("codecs")
    odd_id = talk.create("odd-codecs", 7)
    for codec in Codec:
        records = batch(b"a" * 100, b"b", None, at_ms=talk.base_ms, codec=codec)
        versions = [3, 6, 7, 13] if codec is Codec.ZSTD else [3, 13]
        talk.same(f"{codec.name}", produce("codecs", records, topic_id=topic_id), versions)
    plain = batch(b"a", at_ms=talk.base_ms)
    for partition, bits in enumerate((5, 6, 7, *list(Codec)[1:])):
        wrong = with_attributes(plain, bits)
        talk.ask(f"not codec {bits}", produce("odd-codecs", wrong, topic_id=odd_id, partition=partition))
    talk.ask("read back", fetch("codecs", topic_id=topic_id))
    talk.ask("read back by a client without zstd", fetch("codecs", 0, topic_id=topic_id), 9)


@PRODUCE.story
def a_topic_with_its_own_codec(talk: Talk) -> None:
    for codec in ("uncompressed", "gzip", "zstd"):
        topic_id = talk.create(f"own-{codec}", compression_type=codec)
        for sent in (Codec.NONE, Codec.LZ4):
            records = batch(b"a" * 300, b"b", at_ms=talk.base_ms, codec=sent)
            talk.ask(f"{sent.name} to {codec}", produce(f"own-{codec}", records, topic_id=topic_id))
        answer = talk.quietly(fetch(f"own-{codec}", topic_id=topic_id), 18)
        read = bytes(answer.responses[0].partitions[0].records)
        # Sizes differ between libraries, so only the codec is told.
        talk.keep(f"codecs in {codec}", [read[22] & 7])


@PRODUCE.story
def append_time(talk: Talk) -> None:
    topic_id = talk.create("append-time", message_timestamp_type="LogAppendTime")
    records = batch(b"one", b"two", at_ms=talk.base_ms)
    talk.same("plain", produce("append-time", records, topic_id=topic_id), [3, 9, 13])
    packed = batch(b"one", b"two", at_ms=talk.base_ms, codec=Codec.GZIP)
    talk.ask("compressed", produce("append-time", packed, topic_id=topic_id))
    talk.ask("read back", fetch("append-time", topic_id=topic_id))


@PRODUCE.story
def wrong_places(talk: Talk) -> None:
    topic_id = talk.create("places", 2)
    records = batch(b"one", at_ms=talk.base_ms)
    talk.same("unknown topic", produce("nobody-made-this", records, topic_id=NO_TOPIC))
    talk.same("unknown partition", produce("places", records, topic_id=topic_id, partition=2))
    talk.same("negative partition", produce("places", records, topic_id=topic_id, partition=-1), [3, 13])
    talk.same("bad name", produce("a b", records), [3, 12])
    talk.ask("no id in version 13", produce("places", records))
    mixed = produce("places", records, topic_id=topic_id)
    mixed.topic_data[0].partition_data.append(PartitionProduceData(index=9, records=records))
    talk.same("one good, one unknown", mixed, [3, 12, 13])
    twice = produce("places", records, topic_id=topic_id)
    twice.topic_data[0].partition_data.append(PartitionProduceData(index=0, records=records))
    talk.same("a partition twice", twice, [3, 13])
    talk.ask("the end", list_offsets("places", LATEST))
    nothing = produce("places", records)
    nothing.topic_data = []
    talk.same("nothing", nothing, [3, 13])
    internal = produce("__consumer_offsets", records)
    talk.same("internal topic that is not there", internal, [3, 12])


@PRODUCE.story
def not_enough_replicas(talk: Talk) -> None:
    topic_id = talk.create("needs-two", min_insync_replicas=2)
    records = batch(b"one", at_ms=talk.base_ms)
    for acks in (-1, 1):
        talk.same(f"acks {acks}", produce("needs-two", records, topic_id=topic_id, acks=acks), [3, 13])
    talk.ask("the end", list_offsets("needs-two", LATEST))
