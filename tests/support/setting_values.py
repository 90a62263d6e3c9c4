"""Values other than the default for every setting: by its type, or by its name if not every text will do."""

from barnabas.base.settings import InvalidSetting, Setting, SettingType

_NUMBERS = (SettingType.INT, SettingType.SHORT, SettingType.LONG, SettingType.DOUBLE)
_BY_NAME = {
    "advertised.listeners": "PLAINTEXT://elsewhere:9092",
    "broker.id": "1",
    "cleanup.policy": "compact",
    "compression.gzip.level": "1",
    "compression.type": "zstd",
    "controller.listener.names": "CONTROLLER,CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9094",
    "controller.quorum.voters": "1@localhost:9094",
    "group.consumer.assignors": "range",
    "group.consumer.migration.policy": "disabled",
    "group.coordinator.rebalance.protocols": "classic",
    "group.share.assignors": "org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
    "inter.broker.listener.name": "plaintext",
    "leader.replication.throttled.replicas": "0:1",
    "follower.replication.throttled.replicas": "0:1",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listeners": "PLAINTEXT://localhost:9095,CONTROLLER://localhost:9093",
    "log.cleaner.io.max.bytes.per.second": "1000000.0",
    "log.cleanup.policy": "compact",
    "log.message.timestamp.type": "LogAppendTime",
    "max.connections.per.ip.overrides": "127.0.0.1:5",
    "message.timestamp.type": "LogAppendTime",
    "metrics.recording.level": "DEBUG",
    "node.id": "1",
    "process.roles": "controller,broker",
    "security.inter.broker.protocol": "SSL",
    "share.auto.offset.reset": "by_duration:PT1H",
    "share.isolation.level": "read_committed",
}


def other_texts(one: Setting) -> list[str]:
    """Texts of other values that the setting's own rule allows. Some may not fit with other settings."""
    if one.name in _BY_NAME:
        return [_BY_NAME[one.name]]
    if one.type is SettingType.BOOLEAN:
        return ["false" if one.default else "true"]
    if one.type not in _NUMBERS:
        return ["other"]
    start = one.default if isinstance(one.default, int | float) else 0
    step = 0.1 if one.type is SettingType.DOUBLE else 1
    return [text for text in (str(start + step), str(start - step)) if _is_allowed(one, text)]


def _is_allowed(one: Setting, text: str) -> bool:
    try:
        return one.parse(text) != one.default
    except InvalidSetting:
        return False
