"""The blocking admin client: the methods of the async Admin, which documents them, without `await`."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from barnabas.client.admin.admin import Admin as AsyncAdmin
from barnabas.client.blocking.mirror import close_client, mirrored, start_client
from barnabas.client.ports import ClientPorts


class Admin:
    """Started by the constructor. Thread-safe."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        self._thread, self._client = start_client("admin", lambda: AsyncAdmin(settings, ports=ports, **named))

    def close(self) -> None:
        """End pending calls, all connections and the thread. Later calls raise Closed."""
        close_client(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    create_topic = mirrored(AsyncAdmin.create_topic)
    create_topics = mirrored(AsyncAdmin.create_topics)
    delete_topic = mirrored(AsyncAdmin.delete_topic)
    delete_topics = mirrored(AsyncAdmin.delete_topics)
    list_topics = mirrored(AsyncAdmin.list_topics)
    describe_topic = mirrored(AsyncAdmin.describe_topic)
    describe_topics = mirrored(AsyncAdmin.describe_topics)
    create_partitions = mirrored(AsyncAdmin.create_partitions)
    create_partitions_of = mirrored(AsyncAdmin.create_partitions_of)

    describe_config = mirrored(AsyncAdmin.describe_config)
    describe_configs = mirrored(AsyncAdmin.describe_configs)
    alter_config = mirrored(AsyncAdmin.alter_config)
    alter_configs = mirrored(AsyncAdmin.alter_configs)
    list_config_resources = mirrored(AsyncAdmin.list_config_resources)

    list_offsets = mirrored(AsyncAdmin.list_offsets)
    first_record_times = mirrored(AsyncAdmin.first_record_times)
    delete_records = mirrored(AsyncAdmin.delete_records)
    describe_producers = mirrored(AsyncAdmin.describe_producers)

    list_groups = mirrored(AsyncAdmin.list_groups)
    describe_group = mirrored(AsyncAdmin.describe_group)
    describe_groups = mirrored(AsyncAdmin.describe_groups)
    delete_group = mirrored(AsyncAdmin.delete_group)
    delete_groups = mirrored(AsyncAdmin.delete_groups)
    list_group_offsets = mirrored(AsyncAdmin.list_group_offsets)
    list_group_offsets_of = mirrored(AsyncAdmin.list_group_offsets_of)
    alter_group_offsets = mirrored(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = mirrored(AsyncAdmin.delete_group_offsets)
    remove_group_members = mirrored(AsyncAdmin.remove_group_members)

    list_transactions = mirrored(AsyncAdmin.list_transactions)
    describe_transaction = mirrored(AsyncAdmin.describe_transaction)
    describe_transactions = mirrored(AsyncAdmin.describe_transactions)
    find_hanging = mirrored(AsyncAdmin.find_hanging)
    end_transactions = mirrored(AsyncAdmin.end_transactions)
    abort_transaction = mirrored(AsyncAdmin.abort_transaction)
    fence_producer = mirrored(AsyncAdmin.fence_producer)
    fence_producers = mirrored(AsyncAdmin.fence_producers)

    describe_cluster = mirrored(AsyncAdmin.describe_cluster)
    api_versions = mirrored(AsyncAdmin.api_versions)
    unregister_broker = mirrored(AsyncAdmin.unregister_broker)
    describe_features = mirrored(AsyncAdmin.describe_features)
    update_features = mirrored(AsyncAdmin.update_features)
    describe_quorum = mirrored(AsyncAdmin.describe_quorum)
    describe_log_dirs = mirrored(AsyncAdmin.describe_log_dirs)
    elect_leaders = mirrored(AsyncAdmin.elect_leaders)
