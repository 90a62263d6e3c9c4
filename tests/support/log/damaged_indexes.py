"""Indexes and producer snapshots with something wrong in them, or beside a log that they do not fit."""

from collections.abc import Iterator
from struct import pack, unpack_from

from barnabas.records.header import crc32c_of
from support.log.damaged_files import FIRST, SECOND, Case, flip, one, poke, position, sample


def index_cases() -> list[Case]:
    return [
        case for maker in (offset_indexes, time_indexes, snapshots, txn_indexes, several) for case in maker()
    ]


# Indexes


def segment(base: str = SECOND, **changed: bytes | None) -> dict[str, bytes]:
    """The files of one segment with 236 entries, some of them changed or left out."""
    files = {kind: sample(f"rolled-0/{base}.{kind}") for kind in ("log", "index", "timeindex")}
    merged = {**files, **changed}
    return {f"{base}.{kind}": data for kind, data in merged.items() if data is not None}


def about(kind: str, what: str, files: dict[str, bytes], *flags: str) -> Case:
    return Case(what, (*flags, "--files", f"DIR/{SECOND}.{kind}"), files)


def offset_indexes() -> Iterator[Case]:
    index = sample(f"rolled-0/{SECOND}.index")
    log = sample(f"rolled-0/{SECOND}.log")
    yield about("index", "a sound offset index", segment())
    yield about("index", "a sound offset index verified", segment(), "--verify-index-only")
    yield about("index", "an empty offset index", segment(index=b""))
    changes = {
        "an offset that is one too large": poke(index, 16, pack(">i", unpack_from(">i", index, 16)[0] + 1)),
        "a negative offset": poke(index, 16, pack(">i", -3)),
        "a position inside a batch": poke(index, 20, pack(">i", unpack_from(">i", index, 20)[0] + 5)),
        "a position at the end": poke(index, 20, pack(">i", len(log))),
        "a position behind the end": poke(index, 20, pack(">i", len(log) + 1)),
        "a negative position": poke(index, 20, pack(">i", -1)),
        "two wrong offsets": poke(poke(index, 16, pack(">i", 7)), 80, pack(">i", 9)),
        "the entries of another segment": sample("rolled-0/00000000000000000000.index"),
        "a byte too many": index + b"\x00",
        "seven bytes too few": index[:-7],
        "zeros behind its entries": index[:80] + bytes(800),
        "a zero entry in the middle": poke(index, 160, bytes(8)),
        "a last offset before the first": index[:-8] + pack(">ii", -1, 0),
    }
    for what, changed in changes.items():
        yield about("index", f"an offset index with {what}", segment(index=changed), "--verify-index-only")
        yield about(
            "index", f"an offset index with {what}, checked", segment(index=changed), "--index-sanity-check"
        )
    yield about("index", "an offset index without its log", segment(log=None))
    yield about("index", "an offset index that is not there", segment(index=None))
    yield about("index", "an offset index and a torn log", segment(log=log[:500_000]), "--verify-index-only")
    for most in ("60", "300", "0", "-1"):
        yield about("index", f"batches of at most {most} bytes", segment(), "--max-message-size", most)


def time_indexes() -> Iterator[Case]:
    times = sample(f"rolled-0/{SECOND}.timeindex")
    index = sample(f"rolled-0/{SECOND}.index")
    log = sample(f"rolled-0/{SECOND}.log")
    (first,) = unpack_from(">q", times)
    yield about("timeindex", "a sound time index", segment())
    yield about("timeindex", "an empty time index", segment(timeindex=b""))
    changes = {
        "a wrong time": poke(times, 24, pack(">q", 12345)),
        "a time that goes back": poke(times, 36, pack(">q", first)),
        "a wrong offset": poke(times, 32, pack(">i", unpack_from(">i", times, 32)[0] + 1)),
        "an offset behind the end": poke(times, 32, pack(">i", 2**30)),
        "a negative offset": poke(times, 32, pack(">i", -4)),
        "the entries of another segment": sample("rolled-0/00000000000000000000.timeindex"),
        "a byte too many": times + b"\x00",
        "zeros behind its entries": times[:120] + bytes(600),
        "a last time before the first": times[:-12] + pack(">qi", first - 1, 3000),
        "a last offset before the first": times[:-12] + pack(">qi", first * 2, -1),
    }
    for what, changed in changes.items():
        yield about(
            "timeindex", f"a time index with {what}", segment(timeindex=changed), "--verify-index-only"
        )
        yield about(
            "timeindex",
            f"a time index with {what}, checked",
            segment(timeindex=changed),
            "--index-sanity-check",
        )
    for kind in ("log", "index", "timeindex"):
        yield about("timeindex", f"a time index without its {kind}", segment(**{kind: None}))
    bad_lookup = poke(index, 84, pack(">i", len(log) + 9))
    yield about(
        "timeindex", "a time index and a wrong position", segment(index=bad_lookup), "--verify-index-only"
    )
    mixed = poke(index, 800, pack(">i", 1))
    yield about(
        "timeindex", "a time index and offsets out of order", segment(index=mixed), "--verify-index-only"
    )
    yield about(
        "timeindex", "a time index and an empty offset index", segment(index=b""), "--verify-index-only"
    )
    yield about("timeindex", "a time index and a long offset index", segment(index=warm_end(len(log) + 1)))
    torn = segment(log=log[:500_000])
    yield about("timeindex", "a time index and a torn log", torn, "--verify-index-only")
    late = position(log, 2000)
    yield about(
        "timeindex", "a time index and a log that breaks off", segment(log=poke(log, late + 8, bytes(4)))
    )
    bad_record = segment(log=flip(log, position(log, 20) + 61))
    yield about("timeindex", "a time index and damaged records", bad_record, "--verify-index-only")


def warm_end(outside: int) -> bytes:
    """An index out of order, so that a lookup which starts elsewhere than Kafka's ends outside of the log.

    Kafka asks the last 1024 entries first, unless the one before them is not below what is looked for.
    """
    before = 2000 - 1 - 1024
    offsets = [10**6 if number == before else number for number in range(2000)]
    return b"".join(
        pack(">ii", offset, 0 if number <= before else outside) for number, offset in enumerate(offsets)
    )


# What is kept about producers


def snapshots() -> Iterator[Case]:
    file = "00000000000000000034.snapshot"
    data = sample(f"txn-0/{file}")
    yield one("a sound snapshot", file, data)
    yield one("an empty file for a snapshot", file, b"")
    yield one("one byte of a snapshot", file, data[:1])
    yield one("a snapshot that is cut", file, data[:-5])
    yield one("a snapshot of a billion producers", file, poke(data, 6, pack(">i", 10**9)))
    yield one("a snapshot of version 2", file, poke(data, 0, b"\x00\x02"))
    yield one("a snapshot with a wrong byte", file, flip(data, 20))
    yield one("a snapshot with a byte too many", file, data + b"\x00")
    yield one("a snapshot without producers", file, sealed(pack(">i", 0)))
    yield Case("a snapshot that is not there", ("--files", f"DIR/{file}"), {})
    entry = data[10:56]
    for what, at, new in (
        ("an open transaction", 38, pack(">q", 77)),
        ("no batch", 14, pack(">q", -1)),
        ("a batch that crosses the end of the sequence", 22, pack(">i", 40)),
        ("a negative offset delta", 22, pack(">i", -40)),
    ):
        yield one(f"a producer with {what}", file, sealed(pack(">i", 1) + poke(entry, at, new)))


def sealed(body: bytes) -> bytes:
    """A producer snapshot with the checksum that its body has."""
    return pack(">hI", 1, crc32c_of(body, 0, len(body))) + body


def txn_indexes() -> Iterator[Case]:
    file = f"{FIRST}.txnindex"
    data = sample(f"txn-0/{file}")
    yield one("an empty transaction index", file, b"")
    yield one("a transaction index with three bytes too many", file, data + b"abc")
    yield one("a transaction index that is cut", file, data[:-1])
    yield one("a transaction index with version 1 in one byte", file, poke(data, 34, b"\x01"))
    yield one("a transaction index with version 1", file, poke(data, 35, b"\x01"))
    yield one("a transaction index with a negative version", file, poke(data, 34, b"\xff\xff"))
    yield Case("a transaction index that is not there", ("--files", f"DIR/{file}"), {})
    yield one("a transaction index with a strange name", "abc.txnindex", data)


# Several


def several() -> Iterator[Case]:
    files = {**segment(), "x.y": b"", f"{FIRST}.log": sample(f"first-0/{FIRST}.log")}
    names = f"DIR/x.y,DIR/{SECOND}.index,DIR/{SECOND}.timeindex,DIR/{FIRST}.log,,DIR/x.y,,"
    yield Case("several files", ("--verify-index-only", "--files", names), files)
    names = f"DIR/{FIRST}.log,DIR/abc.log,DIR/{FIRST}.log"
    yield Case("several files, one of them bad", ("--files", names), files)
    yield Case("an empty name", ("--files", ""), {})
