"""Records of the metadata log: brokers, controllers, features, transactions of the log itself."""

from barnabas.base.ids import Uuid
from barnabas.protocol.schema.fields import array, boolean, int8, int16, int32, int64, string, uint16, uuid
from barnabas.protocol.schema.struct import message, struct


@struct
class BrokerEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class BrokerFeature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message("metadata", key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    """v1 in_controlled_shutdown; v2 is_migrating_zk_broker; v3 log_dirs; v4 cordoned_log_dirs"""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: Uuid = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(null="0+")
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[Uuid] = array(uuid, "3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "4+", null="4+", default=None, tag=1)


@message("metadata", key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    broker_id: int = int32()
    broker_epoch: int = int64()


@message("metadata", key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    """v1 in_controlled_shutdown; v2 log_dirs; v3 cordoned_log_dirs"""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8("1+", tag=1)
    log_dirs: list[Uuid] = array(uuid, "2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, "3+", null="3+", default=None, tag=3)


@struct
class ControllerEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class ControllerFeature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message("metadata", key=27, versions="0", flexible="0+")
class RegisterControllerRecord:
    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


@message("metadata", key=12, versions="0", flexible="0+")
class FeatureLevelRecord:
    name: str = string()
    feature_level: int = int16()


@message("metadata", key=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    name: str | None = string(null="0+", default=None, tag=0)


@message("metadata", key=24, versions="0", flexible="0+")
class EndTransactionRecord:
    pass


@message("metadata", key=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    reason: str | None = string(null="0+", default=None, tag=0)


@message("metadata", key=20, versions="0", flexible="0+")
class NoOpRecord:
    pass


@message("metadata", key=21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    zk_migration_state: int = int8()


@message("metadata", key=7, versions="0", flexible="0+")
class FenceBrokerRecord:
    id: int = int32()
    epoch: int = int64()


@message("metadata", key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    id: int = int32()
    epoch: int = int64()


@message("metadata", key=28, versions="0", flexible="0+")
class ClearElrRecord:
    topic_name: str = string()
