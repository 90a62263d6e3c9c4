"""barnabas demo: a tour of what exists so far, made of real work on real bytes.

So far there are the wire protocol, the record batch, the log on disk, one broker, a client and tools; the
tour says what is not there yet.
"""

import argparse
import os
import time

from barnabas.cli.version import describe_kernels


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=20_000, help="how many records to write and read back")


def run(options: argparse.Namespace) -> int:
    from barnabas import __version__
    from barnabas.base.allocator import keep_freed_memory
    from barnabas.base.kernels import compiled_kernels
    from barnabas.cli.demo_broker import show_broker

    keep_freed_memory()
    print(f"barnabas {__version__}, kernels: {describe_kernels(compiled_kernels())}")
    show_protocol()
    show_batches(options.records)
    show_log(options.records)
    show_broker(options.records)
    print("\nnot here yet: groups, transactions, clusters of several nodes, Spark")
    return 0


def show_protocol() -> None:
    from barnabas.protocol.api_keys import ApiKey
    from barnabas.protocol.apis import api
    from barnabas.protocol.exchange import decode_request, encode_request
    from barnabas.protocol.messages.cluster import MetadataRequest, MetadataRequestTopic

    apis = [api(key) for key in ApiKey]
    versions = sum(len(spoken.versions.all()) for spoken in apis)
    print(f"\nwire protocol: {len(apis)} API keys, {versions} versions of requests and as many of responses")

    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    frame = encode_request(request, 12, key=ApiKey.METADATA, correlation_id=1, client_id="demo")
    print(f"  {request}")
    print(f"  as Metadata v12: {frame.hex()}")
    print(f"  and back: {decode_request(frame[4:]).body}")


def show_batches(count: int) -> None:
    from barnabas.records.builder import build_batch
    from barnabas.records.decode import decode_batch
    from barnabas.records.header import Codec

    start_ms = 1_700_000_000_000
    records = [(start_ms + i, b"key-%d" % (i % 100), b"value %d of the demo" % i, ()) for i in range(count)]
    print(f"\nrecord batches: {count} records written, checked and read back with every codec")
    for codec in Codec:
        start = time.perf_counter()
        batch = build_batch(records, codec=codec)
        built = time.perf_counter()
        decoded = decode_batch(batch)
        done = time.perf_counter()
        same = [(r.timestamp, r.key, r.value, r.headers) for r in decoded] == records
        build_rate, read_rate = count / (built - start) / 1e6, count / (done - built) / 1e6
        print(
            f"  {codec.name.lower():<6}  {len(batch):>9} bytes  build {build_rate:5.2f} M/s"
            f"  read {read_rate:5.2f} M/s  {'equal' if same else 'DIFFERENT'}"
        )
        if not same:
            raise SystemExit(1)


def show_log(count: int) -> None:
    import asyncio
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="barnabas-demo-") as directory:
        asyncio.run(write_and_compact(directory, count))


async def write_and_compact(directory: str, count: int) -> None:
    from barnabas.base.clock import SystemClock
    from barnabas.base.executor import ThreadExecutor
    from barnabas.base.ids import TopicPartition, Uuid
    from barnabas.records.builder import build_batch
    from barnabas.storage.config import LogConfig
    from barnabas.storage.disk import DiskFileSystem
    from barnabas.storage.manager import LogManager
    from barnabas.storage.upkeep import Upkeep, UpkeepSettings

    clock, executor = SystemClock(), ThreadExecutor(2)
    config = LogConfig.parse({"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"})
    tp = TopicPartition("prices", 0)

    def manager() -> LogManager:
        return LogManager(
            DiskFileSystem(),
            clock,
            executor,
            paths=[f"{directory}/data"],
            cluster_id="demo",
            node_id=1,
            configs=lambda _: config,
            new_id=lambda: Uuid(os.urandom(16)),
        )

    logs = manager()
    await logs.open()
    log = await logs.create(tp, Uuid(bytes(15) + b"p"), config)
    upkeep = Upkeep(logs, UpkeepSettings(), secret=bytes(16))
    start = time.perf_counter()
    for first in range(0, count, 100):
        now_ms = clock.now_ms()
        records = [(now_ms, b"item-%d" % (i % 500), b"price %d" % i, ()) for i in range(first, first + 100)]
        log.append_as_leader(build_batch(records), leader_epoch=0, now_ms=now_ms)
    took = time.perf_counter() - start
    log.advance_high_watermark(log.end_offset)
    print(f"\nthe log on disk: {log.end_offset} records, {log.size} bytes in {took * 1000:.0f} ms")
    log.roll(clock.now_ms())
    await upkeep.flush_due()
    await upkeep.clean_all()
    print(f"  compacted: {log.size} bytes left, the last value of each of 500 keys")
    await logs.close()
    again = manager()
    report = await again.open()
    opened = again.logs[tp]
    start_offset, end_offset = opened.start_offset, opened.end_offset
    print(f"  closed and opened again: {report.loaded} log, offsets {start_offset} to {end_offset}")
    if (report.loaded, opened.end_offset) != (1, log.end_offset):
        raise SystemExit(1)
    await again.close()
    executor.close()
