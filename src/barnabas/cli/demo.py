"""barnabas demo: a tour of what exists so far, made of real work on real bytes.

So far there are the wire protocol and the record batch; there is no broker yet, and the tour says so.
"""

import argparse
import time

from barnabas.cli.version import describe_kernels


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=20_000, help="how many records to write and read back")


def run(options: argparse.Namespace) -> int:
    from barnabas import __version__
    from barnabas.base.allocator import keep_freed_memory
    from barnabas.base.kernels import compiled_kernels

    keep_freed_memory()
    print(f"barnabas {__version__}, kernels: {describe_kernels(compiled_kernels())}")
    show_protocol()
    show_batches(options.records)
    print("\nnot here yet: the log on disk, the broker, the client, groups, transactions, Spark")
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
