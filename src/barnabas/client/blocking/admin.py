"""The admin client for scripts: the methods of the async one, which says what each does, without `await`."""

from collections.abc import Mapping

from barnabas.client.admin.admin import Admin as AsyncAdmin
from barnabas.client.blocking.mirror import Blocking, mirrored
from barnabas.client.ports import ClientPorts


class Admin(Blocking[AsyncAdmin]):
    """Ready when it is made. May be used by several threads at once."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        /,
        *,
        ports: ClientPorts | None = None,
        **named: object,
    ) -> None:
        super().__init__(lambda: AsyncAdmin(settings, ports=ports, **named))

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
    delete_records = mirrored(AsyncAdmin.delete_records)
    describe_producers = mirrored(AsyncAdmin.describe_producers)

    describe_cluster = mirrored(AsyncAdmin.describe_cluster)
    api_versions = mirrored(AsyncAdmin.api_versions)
    unregister_broker = mirrored(AsyncAdmin.unregister_broker)
    describe_features = mirrored(AsyncAdmin.describe_features)
    update_features = mirrored(AsyncAdmin.update_features)
    describe_quorum = mirrored(AsyncAdmin.describe_quorum)
    describe_log_dirs = mirrored(AsyncAdmin.describe_log_dirs)
    elect_leaders = mirrored(AsyncAdmin.elect_leaders)
