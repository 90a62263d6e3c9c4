"""Logs with something wrong in them, and logs that are read with another topic's decoder."""

from collections.abc import Iterator
from struct import pack, unpack_from

from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, control_key
from barnabas.records.header import Codec, batch_headers
from support.log.damaged_files import FIRST, SECOND, Case, flip, one, poke, position, sample


def log_cases() -> list[Case]:
    makers = (torn_logs, odd_headers, odd_records, odd_control, odd_names, limits, decoders, plain_decoders)
    return [case for maker in makers for case in maker()]


# Logs


def torn_logs() -> Iterator[Case]:
    log = sample("txn-0/00000000000000000000.log")
    last = position(log, -1)
    file = f"{FIRST}.log"
    yield one("an empty log", file, b"")
    yield one("a log without its last byte", file, log[:-1], "--deep-iteration")
    for left in (1, 12, 16, 17, 18, 40, 61, 70):
        yield one(f"a log with {left} bytes of its last batch", file, log[: last + left])
    yield one("a log with five zeros behind it", file, log + bytes(5))
    yield one("a log with seventeen zeros behind it", file, log + bytes(17))
    yield one("a log with a hundred zeros behind it", file, log + bytes(100), "--print-data-log")
    yield one("a file that is no log at all", file, b"This is a file that somebody gave the wrong name.\n")


def odd_headers() -> Iterator[Case]:
    log = b"".join(small_batch(base_offset) for base_offset in (0, 3, 6))
    second = position(log, 1)
    file = f"{FIRST}.log"
    numbers = {
        "base offset -5": (0, pack(">q", -5)),
        "the largest base offset": (0, pack(">q", 2**63 - 1)),
        "a negative length": (8, pack(">i", -1)),
        "length 13": (8, pack(">i", 13)),
        "length 14": (8, pack(">i", 14)),
        "length 48": (8, pack(">i", 48)),
        "a length that is too large": (8, pack(">i", 2**31 - 1)),
        "leader epoch -1": (12, pack(">i", -1)),
        "magic 0": (16, b"\x00"),
        "magic 1": (16, b"\x01"),
        "magic 3": (16, b"\x03"),
        "a negative magic": (16, b"\x82"),
        "another CRC": (17, b"\xff\xff\xff\xff"),
        "codec 5": (21, b"\x00\x05"),
        "codec 7": (21, b"\x00\x07"),
        "gzip that is none": (21, b"\x00\x01"),
        "zstd that is none": (21, b"\x00\x04"),
        "log append time": (21, b"\x00\x08"),
        "a delete horizon": (21, b"\x00\x50"),
        "all unknown attributes": (21, b"\xff\x80"),
        "last offset delta -1": (23, pack(">i", -1)),
        "the largest last offset delta": (23, pack(">i", 2**31 - 1)),
        "base timestamp -1": (27, pack(">q", -1)),
        "the largest base timestamp": (27, pack(">q", 2**63 - 1)),
        "max timestamp -1": (35, pack(">q", -1)),
        "producer id -1": (43, pack(">q", -1)),
        "the last sequence number": (53, pack(">i", 2**31 - 1)),
        "a negative sequence number": (53, pack(">i", -7)),
        "no records by its count": (57, pack(">i", 0)),
        "a negative count": (57, pack(">i", -1)),
        "the largest count": (57, pack(">i", 2**31 - 1)),
    }
    for what, (at, new) in numbers.items():
        damaged = poke(log, second + at, new)
        yield one(f"a batch with {what}", file, damaged)
        yield one(f"a batch with {what}, deep", file, damaged, "--deep-iteration")
    (count,) = unpack_from(">i", log, second + 57)
    yield one(
        "one record less by the count",
        file,
        poke(log, second + 57, pack(">i", count - 1)),
        "--deep-iteration",
    )
    yield one(
        "one record more by the count",
        file,
        poke(log, second + 57, pack(">i", count + 1)),
        "--deep-iteration",
    )


def small_batch(base_offset: int) -> bytes:
    records = [(1_760_000_000_000 + i, b"key-%d" % i, b"value", ()) for i in range(3)]
    return build_batch(
        records,
        base_offset=base_offset,
        leader_epoch=2,
        producer_id=9,
        producer_epoch=1,
        base_sequence=base_offset,
    )


def odd_records() -> Iterator[Case]:
    log = sample("codecs-0/00000000000000000000.log")
    file = f"{FIRST}.log"
    starts = [at for at, _ in batch_headers(log)]
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        area = starts[number] + 61
        yield one(
            f"{codec} records with a wrong byte at their start", file, flip(log, area), "--deep-iteration"
        )
        yield one(
            f"{codec} records with a wrong byte inside", file, flip(log, area + 400), "--deep-iteration"
        )
    small = build_batch([(1000, b"key", b"value", (("h", b"x"),)), (1001, None, b"", ())])
    for at in range(61, len(small)):
        yield one(f"byte {at} of a small batch is wrong", file, flip(small, at), "--print-data-log")
    for at in (61, 64, 65, 69, 75):
        yield one(f"byte {at} of a small batch is 1", file, poke(small, at, b"\x01"), "--print-data-log")
    packed = build_batch([(1, b"k", b"v", ())] * 3, codec=Codec.GZIP)
    for count in (2, 4):
        wrong = poke(packed, 57, pack(">i", count))
        yield one(f"three compressed records that claim to be {count}", file, wrong, "--deep-iteration")
    texts = [bytes(range(start, start + 16)) for start in range(0, 256, 16)]
    odd = [
        *texts,
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"\xe2\x82",
        b"\xc0\xaf",
        b"\xf0\x9f\x98",
        "żółw🐢".encode(),
    ]
    strange = build_batch([(5, text, text[::-1], (("naïve", None),)) for text in odd if b"\n" not in text])
    yield one("keys and values that are no text", file, strange, "--print-data-log")


def odd_control() -> Iterator[Case]:
    log = sample("txn-0/00000000000000000000.log")
    marker = position(log, 6)
    key, value = marker + 61 + 5, marker + 61 + 10
    file = f"{FIRST}.log"
    yield one("a marker of an unknown type", file, poke(log, key, b"\x00\x00\x00\x07"), "--print-data-log")
    yield one("a marker of a later version", file, poke(log, key, b"\x00\x01"), "--print-data-log")
    yield one("a marker of a negative version", file, poke(log, key, b"\xff\xff"), "--print-data-log")
    yield one("a marker's value of a later version", file, poke(log, value, b"\x00\x05"), "--print-data-log")
    yield one(
        "a marker's value of a negative version", file, poke(log, value, b"\x80\x00"), "--print-data-log"
    )
    yield one("data that claims to be control", file, poke(log, 21, b"\x00\x30"), "--print-data-log")
    yield one("control records skipped", file, log, "--print-data-log", "--skip-record-metadata")
    short = {
        "no key": (None, b""),
        "a short key": (b"\x00\x00\x00", b""),
        "no value": (control_key(ControlType.COMMIT), None),
    }
    for what, (bad_key, bad_value) in short.items():
        batch = build_batch([(1, bad_key, bad_value, ())], control=True)
        yield one(f"a control record with {what}", file, batch, "--deep-iteration")
    for kind in ControlType:
        batch = build_batch([(1, control_key(kind), b"\x00\x00", ())], control=True)
        yield one(f"a {kind.name} that is cut off", file, batch, "--deep-iteration")


def odd_names() -> Iterator[Case]:
    log = sample("first-0/00000000000000000000.log")
    names = (
        f"{FIRST}.log.deleted",
        f"{FIRST}.log.swap",
        f"{FIRST}.log.cleaned",
        "log",
        "abc.log",
        ".log",
        "5.log",
    )
    for name in (
        *names,
        "+5.log",
        "-5.log",
        "99999999999999999999.log",
        "5.6.log",
        "leader-epoch-checkpoint",
    ):
        yield one(f"a log called {name}", name, log, "--deep-iteration")
    snapshot = sample("bootstrap.checkpoint")
    for name in (
        "bootstrap.checkpoint",
        "00000000000000000100-0000000005.checkpoint",
        "x.checkpoint",
        "1-1.checkpoint",
    ):
        yield one(f"a snapshot called {name}", name, snapshot, "--cluster-metadata-decoder")
    yield Case("a log that is not there", ("--files", f"DIR/{FIRST}.log"), {})
    yield Case("a name with doubled slashes", ("--files", f"DIR///{FIRST}.log/"), {f"{FIRST}.log": log})


def limits() -> Iterator[Case]:
    log = sample("txn-0/00000000000000000000.log")
    for most in (0, 17, 72, 73, 200, -1):
        yield one(f"at most {most} bytes", f"{FIRST}.log", log, "--max-bytes", str(most))
    second = sample(f"rolled-0/{SECOND}.log")
    yield one("a log that does not start at zero", f"{SECOND}.log", second[:3000], "--deep-iteration")
    compacted = sample("compacted-0/00000000000000000000.log")
    yield one("a compacted log", f"{FIRST}.log", compacted, "--deep-iteration")
    yield one(
        "a compacted log, contents only",
        f"{FIRST}.log",
        compacted[:2000],
        "--print-data-log",
        "--skip-record-metadata",
    )


# Decoders


TOPICS = {
    "offsets": "__consumer_offsets-0",
    "transaction-log": "__transaction_state-0",
    "cluster-metadata": "__cluster_metadata-0",
    "share-group-state": "__consumer_offsets-1",
}


def decoders() -> Iterator[Case]:
    for kind in TOPICS:
        for topic in (*TOPICS.values(), "txn-0"):
            log = sample(f"{topic}/{FIRST}.log")[:4000]
            yield one(f"{topic} with the {kind} decoder", f"{FIRST}.log", log, f"--{kind}-decoder")
    log = sample(f"__consumer_offsets-0/{FIRST}.log")
    yield one("offsets without metadata", f"{FIRST}.log", log, "--offsets-decoder", "--skip-record-metadata")
    yield one(
        "the first decoder counts",
        f"{FIRST}.log",
        log[:900],
        "--cluster-metadata-decoder",
        "--offsets-decoder",
    )
    values = {
        "an empty value": b"",
        "one byte": b"\x00",
        "an unknown version": b"\x00\x63",
        "a negative version": b"\xff\xff",
        "a value that is cut off": b"\x00\x03\x00",
    }
    for what, value in values.items():
        batch = build_batch([(1, b"\x00\x02\x00\x01g", value, ())])
        yield one(f"a group with {what}", f"{FIRST}.log", batch, "--offsets-decoder")
    keys = {
        "an empty key": b"",
        "an unknown type": b"\x00\x63",
        "a key that is cut off": b"\x00\x01\x00\x05ab",
    }
    for what, key in keys.items():
        yield one(
            f"offsets with {what}", f"{FIRST}.log", build_batch([(1, key, b"", ())]), "--offsets-decoder"
        )
    records = {
        "nothing": b"",
        "frame version 0": b"\x00\x14\x00\x00",
        "frame version 2": b"\x02\x14\x00\x00",
        "a large frame version": b"\xff\xff\x7f",
        "an unknown type": b"\x01\x63\x00\x00",
        "a large type": b"\x01\xff\xff\x7f\x00\x00",
        "no version": b"\x01\x14",
        "something behind it": b"\x01\x14\x00\x00\xaa\xbb",
        "an end too soon": b"\x01\x0c\x00\x10ab",
    }
    for what, value in records.items():
        batch = build_batch([(1, None, value, ())])
        yield one(f"metadata with {what}", f"{FIRST}.log", batch, "--cluster-metadata-decoder")


def plain_decoders() -> Iterator[Case]:
    numbers = [(1, pack(">i", -7), pack(">q", 1 << 40), ()), (2, None, pack(">qq", 5, 6), ())]
    batch = build_batch([*numbers, (3, b"abc", None, ())], codec=Codec.GZIP)
    api = "org.apache.kafka.tools.api"
    for key, value in (("Integer", "Long"), ("Long", "Integer"), ("String", "Integer")):
        flags = (f"--key-decoder-class={api}.{key}Decoder", f"--value-decoder-class={api}.{value}Decoder")
        yield one(f"{key} keys and {value} values", f"{FIRST}.log", batch, *flags)
    yield one(
        "a decoder that does not exist", f"{FIRST}.log", batch, "--value-decoder-class", "com.example.Decoder"
    )
    yield Case(
        "a decoder without a name",
        ("--key-decoder-class", "--files", f"DIR/{FIRST}.log"),
        {f"{FIRST}.log": batch},
    )
    codecs = sample(f"codecs-0/{FIRST}.log")
    yield one("every codec, printed", f"{FIRST}.log", codecs, "--print-data-log")
    yield one(
        "append time, printed", f"{FIRST}.log", sample(f"append-time-0/{FIRST}.log"), "--print-data-log"
    )
    yield one("empty lines", f"{FIRST}.log", codecs[:2246], "--deep-iteration", "--skip-record-metadata")
