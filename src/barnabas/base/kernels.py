"""The modules that mypyc compiles, and whether it did.

setup.py reads KERNELS from this file by path, so nothing is imported at the top. The modules in GENERATED
exist only where the build has written them (barnabas/protocol/tuned).
"""

GENERATED = (
    "barnabas.protocol.generated.classic_groups",
    "barnabas.protocol.generated.cluster",
    "barnabas.protocol.generated.consumer_groups",
    "barnabas.protocol.generated.fetch",
    "barnabas.protocol.generated.group_offsets",
    "barnabas.protocol.generated.offsets",
    "barnabas.protocol.generated.produce",
    "barnabas.protocol.generated.transactions",
)
KERNELS = (
    *GENERATED,
    "barnabas.base.clock",
    "barnabas.protocol.wire",
    "barnabas.protocol.tuned.reader",
    "barnabas.protocol.tuned.writer",
    "barnabas.protocol.schema.codec",
    "barnabas.protocol.apis",
    "barnabas.protocol.exchange",
    "barnabas.records.header",
    "barnabas.records.lz4_blocks",
    "barnabas.records.record",
    "barnabas.records.decode",
    "barnabas.records.validate",
    "barnabas.records.encode",
    "barnabas.records.builder",
    "barnabas.records.rebuild",
    "barnabas.records.column_walk",
    "barnabas.records.column_scan",
    "barnabas.records.column_cells",
    "barnabas.records.column_seal",
    "barnabas.records.column_pack",
    "barnabas.client.producer.key_hashes",
    "barnabas.client.consumer.message",
    "barnabas.client.consumer.decode",
    "barnabas.storage.producers.state",
    "barnabas.storage.producers.rules",
    "barnabas.storage.producers.open_txns",
    "barnabas.storage.producers.table",
    "barnabas.storage.segment.marker",
    "barnabas.storage.segment.index",
    "barnabas.storage.segment.segment",
    "barnabas.storage.intake",
    "barnabas.storage.log",
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
    "barnabas.replication.partition",
    "barnabas.coordinators.decision.outcome",
    "barnabas.coordinators.decision.timers",
    "barnabas.coordinators.runtime.writing",
    "barnabas.coordinators.runtime.host",
    "barnabas.coordinators.runtime.shards",
    "barnabas.coordinators.txn.state",
    "barnabas.coordinators.txn.record",
    "barnabas.coordinators.txn.table",
    "barnabas.coordinators.txn.answers",
    "barnabas.coordinators.txn.adding",
    "barnabas.coordinators.txn.ending",
    "barnabas.coordinators.txn.initializing",
    "barnabas.coordinators.txn.shard",
    "barnabas.coordinators.group.assignors.homogeneous",
    "barnabas.coordinators.group.assignors.shares",
    "barnabas.coordinators.group.classic.member",
    "barnabas.coordinators.group.classic.group",
    "barnabas.coordinators.group.consumer.packing",
    "barnabas.coordinators.group.context",
    "barnabas.coordinators.group.offsets.load",
    "barnabas.coordinators.group.offsets.record",
    "barnabas.coordinators.group.offsets.table",
    "barnabas.coordinators.group.offsets.pending",
    "barnabas.coordinators.group.offsets.offsets",
    "barnabas.server.requests.api",
    "barnabas.server.coordination.calls",
    "barnabas.server.coordination.hosted_partition",
    "barnabas.server.coordination.groups",
    "barnabas.server.coordination.markers",
    "barnabas.server.coordination.transactions",
    "barnabas.server.coordination.verification",
    "barnabas.server.produce.partition_batch",
    "barnabas.server.fetch.sessions",
    "barnabas.server.fetch.waiting",
    "barnabas.server.handlers.fetch",
    "barnabas.server.handlers.produce",
    "barnabas.server.handlers.group_offsets",
    "barnabas.server.handlers.transactions",
    "barnabas.server.metrics.request_stats",
    "barnabas.server.network.writable",
    "barnabas.server.network.outlet",
    "barnabas.server.network.transport_outlet",
    "barnabas.server.network.request_bytes",
    "barnabas.server.network.response_bytes",
    "barnabas.server.network.pool",
    "barnabas.server.network.backlog",
    "barnabas.server.network.large_frames",
    "barnabas.server.network.pending",
    "barnabas.server.network.connection",
)


def compiled_kernels() -> dict[str, bool]:
    """Say for every kernel whether the loaded module is machine code or plain Python."""
    from importlib.util import find_spec

    state = {}
    for name in KERNELS:
        try:
            spec = find_spec(name)
        except ModuleNotFoundError:
            # The package of generated modules.
            spec = None
        state[name] = spec is not None and spec.origin is not None and not spec.origin.endswith(".py")
    return state
