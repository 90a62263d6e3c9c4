"""What the server reads: the values of all supported settings, typed, with their units in their names.

BrokerSettings.parse() takes what an operator has set, as texts by Kafka's names, and refuses what is wrong,
unknown or not supported: InvalidSetting says what, where, and what would be right. A field is called as its
setting with `_` for `.`, except where a setting means something else than its text: listeners, voters,
directories. What topics fall back on has no fields: storage/config.py reads `topic_defaults`.
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

# The broker's settings that topics fall back on.
TOPIC_FALLBACKS: Final = frozenset(
    synonym.name for setting in TOPIC_SETTINGS.values() for synonym in setting.synonyms
)
# However long log.flush.scheduler.interval.ms is: flush.ms of a topic must not wait for it.
_FLUSH_CHECK_MAX_MS: Final = 1_000


@value(kw_only=True)
class BrokerSettings:
    """One value for every setting that works. Never changed: a change makes new ones (dynamic.py)."""

    # By Kafka's names: what was given, and the value of every setting, for checks of those without a field.
    given: Mapping[str, str]
    values: Mapping[str, Any]
    # For LogConfig.parse(topic's own settings, topic_defaults); and what it makes of no settings of a topic.
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

    # Listeners: to bind, and to tell others of. See Endpoint for what may be left open.
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
    # By the names of listeners, those that have one of their own.
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
        """The settings of a broker that was given these."""
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
        """How many threads the executor has."""
        return self.num_io_threads + self.background_threads

    @property
    def upkeep(self) -> UpkeepSettings:
        """How often the chores of logs are done."""
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
    """The fields that are nothing but the value of a setting."""
    names = {one.attribute: name for name, one in BROKER.items() if one.works}
    return {one.name: values[names[one.name]] for one in fields(BrokerSettings) if one.name in names}


def _overrides(values: Mapping[str, Value]) -> dict[str, int]:
    text = values["max.connections.per.ip.overrides"]
    assert isinstance(text, str), "the declared type"
    return parse_overrides("max.connections.per.ip.overrides", text)
