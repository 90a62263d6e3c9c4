"""The typed values of all supported broker settings; their names include the units.

BrokerSettings.parse() takes the operator's settings, as texts by Kafka's names. It raises InvalidSetting for
an invalid, unknown or unsupported one. A field has the name of its setting with `_` for `.`, except where the
setting is parsed into something else: listeners, voters, directories. Topic defaults have no fields:
storage/config.py reads `topic_defaults`.
"""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from barnabas.base.setting_rules import Value
from barnabas.base.values import value
from barnabas.server.settings.catalog import BROKER, OF_LISTENERS, by_listener, find
from barnabas.server.settings.endpoints import Endpoint, Voter, parse_overrides
from barnabas.server.settings.together import Listeners, check_roles, check_values, node_id, voters_of
from barnabas.storage.config import LogConfig
from barnabas.storage.topic_settings import SETTINGS as TOPIC_SETTINGS
from barnabas.storage.upkeep import UpkeepSettings

# Broker settings that are defaults of topic settings.
TOPIC_FALLBACKS: Final = frozenset(
    synonym.name for setting in TOPIC_SETTINGS.values() for synonym in setting.synonyms
)
# A limit for log.flush.scheduler.interval.ms: a topic's flush.ms must not wait longer.
_FLUSH_CHECK_MAX_MS: Final = 1_000


@value(kw_only=True)
class BrokerSettings:
    """The value of every supported setting. Immutable: a change creates a new object (dynamic.py)."""

    # By Kafka's names: the given texts, and the value of every setting, to check those without a field.
    given: Mapping[str, str]
    values: Mapping[str, Any]
    # For LogConfig.parse(topic's own settings, topic_defaults), and its result for a topic without settings.
    topic_defaults: Mapping[str, str]
    log_config: LogConfig

    # The node
    node_id: int
    process_roles: tuple[str, ...]
    broker_rack: str | None
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    initial_broker_registration_timeout_ms: int
    controlled_shutdown_enable: bool
    unstable_api_versions_enable: bool
    num_io_threads: int
    background_threads: int

    # Listeners to bind and to advertise. Host and port may be unspecified: see Endpoint.
    broker_listeners: tuple[Endpoint, ...]
    controller_listeners: tuple[Endpoint, ...]
    advertised_broker_listeners: tuple[Endpoint, ...]
    advertised_controller_listeners: tuple[Endpoint, ...]
    inter_broker_listener_name: str

    # Connections and requests
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    max_connections: int
    max_connection_creation_rate: int
    # Limits of single listeners, by listener name.
    listener_max_connections: Mapping[str, int]
    listener_max_connection_creation_rate: Mapping[str, int]
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    connections_max_idle_ms: int
    queued_max_request_bytes: int
    request_timeout_ms: int
    max_request_partition_size_limit: int
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int

    # The quorum and its log
    controller_quorum_voters: tuple[Voter, ...]
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    metadata_log_dir: str
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    metadata_max_idle_interval_ms: int

    # Topics and replicas
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_seconds: int
    unclean_leader_election_interval_ms: int
    replica_high_watermark_checkpoint_interval_ms: int

    # Groups
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_initial_rebalance_delay_ms: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_session_timeout_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_assignment_interval_ms: int
    group_consumer_min_assignment_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_compression_codec: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int

    # Transactions
    add_partitions_to_txn_retry_backoff_ms: int
    add_partitions_to_txn_retry_backoff_max_ms: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_load_buffer_size: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transaction_two_phase_commit_enable: bool
    transactional_id_expiration_ms: int

    # Logs
    log_dirs: tuple[str, ...]
    num_recovery_threads_per_data_dir: int
    log_retention_check_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_initial_task_delay_ms: int
    log_cleaner_enable: bool
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> "BrokerSettings":
        """Parse and validate the settings of a broker. InvalidSetting for the first error."""
        values = {name: one.default for name, one in BROKER.items()}
        values |= {name: find(name).parse_supported(text) for name, text in properties.items()}
        values["node.id"] = node_id(properties, values)
        check_roles(values)
        listeners = Listeners.of(properties, values)
        voters = voters_of(values, values["node.id"])
        check_values(properties, values)
        topic_defaults = {name: text for name, text in properties.items() if name in TOPIC_FALLBACKS}
        directories = values["log.dirs"] or values["log.dir"]
        assert isinstance(directories, tuple), "the declared type"
        read: dict[str, Any] = {
            **_plain_values(values),
            "given": MappingProxyType(dict(properties)),
            "values": MappingProxyType(values),
            "topic_defaults": MappingProxyType(topic_defaults),
            "log_config": LogConfig.parse({}, topic_defaults),
            "broker_listeners": listeners.brokers,
            "controller_listeners": listeners.controllers,
            "advertised_broker_listeners": listeners.advertised_brokers,
            "advertised_controller_listeners": listeners.advertised_controllers,
            "inter_broker_listener_name": listeners.inter_broker,
            "max_connections_per_ip_overrides": MappingProxyType(_overrides(values)),
            **{
                f"listener_{name.replace('.', '_')}": MappingProxyType(by_listener(name, values))
                for name in OF_LISTENERS
            },
            "controller_quorum_voters": voters,
            "log_dirs": directories,
            "metadata_log_dir": values["metadata.log.dir"] or directories[0],
        }
        return cls(**read)

    @property
    def blocking_threads(self) -> int:
        """The executor's number of threads."""
        return self.num_io_threads + self.background_threads

    @property
    def upkeep(self) -> UpkeepSettings:
        """The intervals of the logs' periodic tasks."""
        return UpkeepSettings(
            flush_check_ms=min(self.log_flush_scheduler_interval_ms, _FLUSH_CHECK_MAX_MS),
            checkpoint_ms=min(
                self.log_flush_offset_checkpoint_interval_ms,
                self.log_flush_start_offset_checkpoint_interval_ms,
                self.replica_high_watermark_checkpoint_interval_ms,
            ),
            initial_delay_ms=self.log_initial_task_delay_ms,
            retention_check_ms=self.log_retention_check_interval_ms,
            cleaner_enable=self.log_cleaner_enable,
            cleaner_backoff_ms=self.log_cleaner_backoff_ms,
            cleaner_map_bytes=self.log_cleaner_dedupe_buffer_size,
            producer_check_ms=self.producer_id_expiration_check_interval_ms,
            producer_expiration_ms=self.producer_id_expiration_ms,
        )


def _plain_values(values: Mapping[str, Value]) -> dict[str, Any]:
    """The fields that hold the parsed value of a setting unchanged."""
    names = {one.attribute: name for name, one in BROKER.items() if one.works}
    return {one.name: values[names[one.name]] for one in fields(BrokerSettings) if one.name in names}


def _overrides(values: Mapping[str, Value]) -> dict[str, int]:
    text = values["max.connections.per.ip.overrides"]
    assert isinstance(text, str), "the declared type"
    return parse_overrides("max.connections.per.ip.overrides", text)
