"""What an administrator asks for: topics, partitions, settings, records deleted, the cluster described."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from support.clients.client import (
    Ability,
    Admin,
    Client,
    ConsumerOptions,
    Message,
    ProducerOptions,
    Refused,
    Setting,
    opened,
)
from support.clients.entries import entry
from support.clients.stage import Stage, wait_until
from support.clients.stories.words import deliver, numbered, offsets, read, send, settings_of, values

# Long enough for a client to look for the topic more than once.
GIVE_UP_AFTER_S = 3.0
# A broker's setting that can be changed while it runs, and the setting of topics that follows it.
BROKER_SETTING, TOPIC_SETTING = "log.cleaner.delete.retention.ms", "delete.retention.ms"


@entry("describe the cluster")
def describe_cluster(client: Client, stage: Stage) -> None:
    with opened(client.admin(stage.address)) as admin:
        found = admin.cluster()

    assert list(found.brokers.values()) == [stage.address]
    assert found.controller in (None, *found.brokers)
    assert found.cluster_id in (None, stage.cluster_id())


@entry("create a topic with settings and partitions", needs=(Ability.CREATE_TOPICS,))
def create_topic(client: Client, stage: Stage) -> None:
    topic = stage.fresh_name()
    settings = {"cleanup.policy": "compact", "retention.ms": "86400000"}

    with opened(client.admin(stage.address)) as admin:
        admin.create_topic(topic, partitions=3, settings=settings)
        wait_until(lambda: admin.topics().get(topic) == 3, f"{topic} is listed")
        found = settings_of(client, stage, topic)
        with pytest.raises(Refused) as again:
            admin.create_topic(topic, partitions=3, settings={})
        with pytest.raises(Refused) as misspelt:
            admin.create_topic(stage.fresh_name(), partitions=1, settings={"retention.ms": "a while"})

    assert {name: found[name].value for name in settings} == settings
    assert {found[name].source for name in settings} == {"DYNAMIC_TOPIC_CONFIG"}
    assert again.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert misspelt.value.code is ErrorCode.INVALID_CONFIG


@entry("delete a topic, and create it again", needs=(Ability.DELETE_TOPICS, Ability.CREATE_TOPICS))
def delete_topic(client: Client, stage: Stage) -> None:
    topic = stage.topic(settings={"retention.ms": "86400000"})
    deliver(client, stage, topic, [Message(value=b"old")])
    impatient = ProducerOptions(give_up_after_s=GIVE_UP_AFTER_S)

    with opened(client.admin(stage.address)) as admin:
        admin.delete_topic(topic)
        wait_until(lambda: topic not in admin.topics(), f"{topic} is gone")
        [refused] = send(client, stage, topic, [Message(value=b"to nowhere")], impatient)
        with pytest.raises(Refused) as again:
            admin.delete_topic(topic)
        admin.create_topic(topic, partitions=1, settings={})
        wait_until(lambda: stage.partitions(topic) == 1, f"{topic} is there again")
        watermarks = admin.watermarks(topic, 0)
        retention = settings_of(client, stage, topic)["retention.ms"]

    assert refused.error is not None
    assert again.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert watermarks == (0, 0)
    assert retention.source == "DEFAULT_CONFIG"
    deliver(client, stage, topic, [Message(value=b"new")])
    assert values(read(client, stage, topic, 1)) == [b"new"]


@entry("add partitions, and not take them away", needs=(Ability.ADD_PARTITIONS,))
def add_partitions(client: Client, stage: Stage) -> None:
    topic = stage.topic(partitions=2)

    with opened(client.admin(stage.address)) as admin:
        admin.add_partitions(topic, 4)
        wait_until(lambda: stage.partitions(topic) == 4, f"{topic} has four partitions")
        with pytest.raises(Refused) as refused:
            admin.add_partitions(topic, 3)
        assert admin.topics()[topic] == 4

    assert refused.value.code is ErrorCode.INVALID_PARTITIONS
    deliver(client, stage, topic, [Message(value=b"v", partition=3)])
    assert values(read(client, stage, topic, 1, ConsumerOptions(partitions=(3,)))) == [b"v"]


@entry("delete records", needs=(Ability.DELETE_RECORDS,))
def delete_records(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    stage.write(topic, numbered(10))

    with opened(client.admin(stage.address)) as admin:
        # In the middle of a batch.
        assert admin.delete_records(topic, 0, before=4) == 4
        assert admin.watermarks(topic, 0) == (4, 10)
        with pytest.raises(Refused) as refused:
            admin.delete_records(topic, 0, before=11)

    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert offsets(read(client, stage, topic, 6)) == [4, 5, 6, 7, 8, 9]


@entry("change the settings of a topic", needs=(Ability.SETTINGS,))
def topic_settings(client: Client, stage: Stage) -> None:
    topic = stage.topic(settings={"retention.ms": "86400000", "cleanup.policy": "compact"})
    wanted = {"retention.ms": "1000000", "max.message.bytes": "5000"}
    large = Message(value=b"x" * 6000)

    with opened(client.admin(stage.address)) as admin:
        default = admin.topic_settings(topic)["segment.bytes"]
        admin.change_topic(topic, wanted=wanted, removed=["cleanup.policy"])
        wait_until(lambda: _values(admin, topic, wanted) == wanted, "the settings are changed")
        found = admin.topic_settings(topic)
        [refused] = send(client, stage, topic, [large], ProducerOptions())
        with pytest.raises(Refused) as unknown:
            admin.change_topic(topic, wanted={**wanted, "no.such.setting": "1"}, removed=[])

    assert default == Setting(value="1073741824", source="DEFAULT_CONFIG")
    assert found["segment.bytes"] == default
    assert found["retention.ms"] == Setting(value="1000000", source="DYNAMIC_TOPIC_CONFIG")
    assert found["max.message.bytes"] == Setting(value="5000", source="DYNAMIC_TOPIC_CONFIG")
    assert found["cleanup.policy"] == Setting(value="delete", source="DEFAULT_CONFIG")
    # It is not only written down.
    assert refused.error is not None
    assert refused.error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert unknown.value.code is ErrorCode.INVALID_CONFIG


def _values(admin: Admin, topic: str, names: dict[str, str]) -> dict[str, str | None]:
    found = admin.topic_settings(topic)
    return {name: found[name].value for name in names}


@entry("change the settings of a broker", needs=(Ability.SETTINGS,))
def broker_settings(client: Client, stage: Stage) -> None:
    topic = stage.topic()
    changed = Setting(value="43200000", source="DYNAMIC_BROKER_CONFIG")
    default = Setting(value="86400000", source="DEFAULT_CONFIG")

    with opened(client.admin(stage.address)) as admin:
        [broker] = admin.cluster().brokers
        before = admin.broker_settings(broker)
        admin.change_broker(broker, wanted={BROKER_SETTING: "43200000"}, removed=[])
        wait_until(lambda: admin.broker_settings(broker)[BROKER_SETTING] == changed, "it is changed")
        followed = admin.topic_settings(topic)[TOPIC_SETTING]
        with pytest.raises(Refused) as read_only:
            admin.change_broker(broker, wanted={"log.dirs": "elsewhere"}, removed=[])
        admin.change_broker(broker, wanted={}, removed=[BROKER_SETTING])
        wait_until(lambda: admin.broker_settings(broker)[BROKER_SETTING] == default, "it is as before")

    assert before[BROKER_SETTING] == default
    assert before["node.id"].source == "STATIC_BROKER_CONFIG"
    assert followed == changed
    assert read_only.value.code is ErrorCode.INVALID_REQUEST
