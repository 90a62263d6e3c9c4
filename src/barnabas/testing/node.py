"""Create a broker in the running event loop, and create or delete topics for tests.

Like cli/serving/serve.py without the process-wide parts: no signal handlers, no settings of the allocator and
the garbage collector, no configuration of logging. Blocking work runs inline instead of in threads: there is
no disk to wait for, and the event loop has its own thread. So there are no further threads to start or to
join.

This module imports the server. Only the thread of a broker imports it, so that the caller does not wait for
the import.
"""

import asyncio
import os
import random
import resource
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.base.checksum import InlineChecksums
from barnabas.base.clock import SystemClock
from barnabas.base.executor import InlineExecutor
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.raft.dynamic_voters import check_voters_are_fixed
from barnabas.server.broker import Broker
from barnabas.server.cluster.formatting import format_storage, new_cluster_id, read_identity
from barnabas.server.ports import Ports
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.storage.directory.meta_properties import check_owner
from barnabas.storage.disk import OPEN_FILES_MAX, Descriptor, DiskFile, DiskFileSystem
from barnabas.testing.settings import HOST, Plan, TopicPlan, broker_properties

# A broker may use 1/OPEN_FILES_SHARE of the process' descriptors for files; other code needs the rest.
OPEN_FILES_SHARE: Final = 8
OPEN_FILES_MIN: Final = 32
TOPIC_TIMEOUT_MS: Final = 30_000
# The broker applies the default of its settings.
_BY_SETTINGS: Final = -1


def new_loop() -> asyncio.AbstractEventLoop:
    """Create the event loop that `barnabas up` uses, without changing the event loop policy."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def make_broker(plan: Plan, port: int) -> Broker:
    """Create a broker on the plan's directory, which is formatted if it is new."""
    fs = _file_system(is_temporary=plan.is_temporary)
    identity = read_identity(fs, [plan.directory])
    own = {} if identity is None else {"node.id": str(identity.node_id)}
    settings = BrokerSettings.parse(
        broker_properties({**own, **plan.settings}, port=port, directory=plan.directory)
    )
    rng, clock = random.Random(), SystemClock()
    if identity is None:
        cluster_id = new_cluster_id(rng)
        format_storage(fs, settings, cluster_id=cluster_id, rng=rng, now_ms=clock.now_ms())
    else:
        cluster_id = identity.cluster_id
        check_owner(plan.directory, identity, cluster_id=cluster_id, node_id=settings.node_id)
        check_voters_are_fixed(fs, plan.directory)
    ports = Ports(
        fs=fs,
        clock=clock,
        executor=InlineExecutor(),
        checksums=InlineChecksums(),
        rng=rng,
        hostname=HOST,
    )
    return Broker(settings, ports, cluster_id=cluster_id)


def _file_system(*, is_temporary: bool) -> DiskFileSystem:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    share = OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else soft // OPEN_FILES_SHARE
    files_max = max(OPEN_FILES_MIN, min(OPEN_FILES_MAX, share))
    kind: Callable[..., DiskFileSystem] = UnsyncedFileSystem if is_temporary else DiskFileSystem
    return kind(open_files_max=files_max)


async def create_topics(broker: Broker, topics: Iterable[TopicPlan]) -> None:
    """Create topics through the controller. They are ready for use on return."""
    wanted = [
        CreatableTopic(
            name=topic.name,
            num_partitions=_BY_SETTINGS if topic.partitions is None else topic.partitions,
            replication_factor=_BY_SETTINGS,
            assignments=[],
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.settings.items()],
        )
        for topic in topics
    ]
    answer = await broker.controller.call(
        CreateTopicsRequest(topics=wanted, timeout_ms=TOPIC_TIMEOUT_MS, validate_only=False)
    )
    assert isinstance(answer, CreateTopicsResponse), answer
    for one in answer.topics:
        _check(one.error_code, f"topic {one.name}", one.error_message)


async def delete_topic(broker: Broker, name: str) -> None:
    state = DeleteTopicState(name=name)
    answer = await broker.controller.call(
        DeleteTopicsRequest(topics=[state], topic_names=[], timeout_ms=TOPIC_TIMEOUT_MS)
    )
    assert isinstance(answer, DeleteTopicsResponse), answer
    for one in answer.responses:
        _check(one.error_code, f"topic {one.name}", one.error_message)


def _check(code: int, about: str, message: str | None) -> None:
    if code != 0:
        # The error that our client raises for the same code.
        from barnabas.client.errors import refused

        raise refused(code, about=about, message=message)


_MODE: Final = 0o600


class UnsyncedFile(DiskFile):
    """A file that need not survive a power loss."""

    __slots__ = ()

    def sync(self) -> None:
        # Syncing a closed file is still an error.
        self.fileno()


class UnsyncedFileSystem(DiskFileSystem):
    """A file system without fsync, for data that is removed when the broker ends.

    Unsynced bytes are in the page cache, where every process reads them; only a power loss would lose them.
    One start and stop request 38 syncs, which take most of their time on a busy disk.
    """

    def sync_directory(self, path: str) -> None:
        # A missing directory is still an error.
        os.stat(path or ".")

    def _file(self, path: str, flags: int) -> DiskFile:
        return UnsyncedFile(self._open_files, path, Descriptor(os.open(path, flags, _MODE)))
