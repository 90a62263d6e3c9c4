"""The modules that mypyc compiles, and whether it did.

setup.py reads KERNELS from this file by path, so nothing is imported at the top.
"""

KERNELS = (
    "barnabas.protocol.wire",
    "barnabas.protocol.tuned.reader",
    "barnabas.protocol.tuned.fetch_request",
    "barnabas.protocol.tuned.produce_request",
    "barnabas.records.varint",
    "barnabas.records.timestamp",
    "barnabas.records.lz4_blocks",
    "barnabas.records.record",
    "barnabas.records.decode",
    "barnabas.records.walk",
    "barnabas.records.lengths",
    "barnabas.records.encode",
    "barnabas.records.builder",
    "barnabas.records.rebuild",
    "barnabas.records.column_walk",
    "barnabas.records.column_scan",
    "barnabas.records.column_cells",
    "barnabas.records.column_seal",
    "barnabas.records.column_pack",
    "barnabas.client.partitioning.murmur2",
    "barnabas.client.partitioning.fnv1a",
    "barnabas.client.consumer.message",
    "barnabas.client.consumer.decode",
    "barnabas.storage.segment.batch",
    "barnabas.storage.producers.state",
    "barnabas.storage.producers.rules",
    "barnabas.storage.producers.open_txns",
    "barnabas.storage.producers.table",
    "barnabas.storage.segment.scan",
    "barnabas.storage.segment.index",
    "barnabas.storage.segment.segment",
    "barnabas.storage.intake",
    "barnabas.storage.log",
    "barnabas.storage.overlap",
    "barnabas.storage.epochs",
    "barnabas.storage.segment.replay",
    "barnabas.storage.rebuild",
    "barnabas.storage.recovery",
    "barnabas.storage.cleaner.key_hash",
    "barnabas.storage.cleaner.key_map",
    "barnabas.storage.cleaner.batch",
    "barnabas.storage.cleaner.transactions",
    "barnabas.storage.cleaner.output",
    "barnabas.storage.cleaner.partial",
    "barnabas.storage.cleaner.rewrite",
    "barnabas.storage.cleaner.build",
    "barnabas.coordinators.group.assignors.homogeneous",
    "barnabas.coordinators.group.assignors.shares",
    "barnabas.coordinators.group.assignors.targets",
    "barnabas.coordinators.group.consumer.packing",
    "barnabas.coordinators.group.offsets.load",
    "barnabas.coordinators.group.offsets.plain",
    "barnabas.coordinators.group.offsets.rows",
    "barnabas.coordinators.group.offsets.table",
    "barnabas.coordinators.group.offsets.values",
)


def compiled_kernels() -> dict[str, bool]:
    """Say for every kernel whether the loaded module is machine code or plain Python."""
    from importlib.util import find_spec

    state = {}
    for name in KERNELS:
        spec = find_spec(name)
        state[name] = spec is not None and spec.origin is not None and not spec.origin.endswith(".py")
    return state
