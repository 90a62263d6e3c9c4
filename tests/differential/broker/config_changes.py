"""Settings changed: IncrementalAlterConfigs and AlterConfigs, and what is seen of it afterwards."""

from barnabas.protocol.messages.configs import (
    AlterConfigsAlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceRequest,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from differential.broker.configs import BROKER, GROUP, METRICS, TOPIC, describe
from differential.broker.talk import Family, Talk

CHANGES = Family("config-changes")
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

OF_CONSUMERS = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)

Change = tuple[str, int, str | None]


def change(
    kind: int, name: str, *changes: Change, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    rows = [
        IncrementalAlterConfigsAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=rows
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def replace(
    kind: int, name: str, *, validate_only: bool = False, **configs: str | None
) -> AlterConfigsRequest:
    rows = [AlterConfigsAlterableConfig(name=key.replace("_", "."), value=configs[key]) for key in configs]
    resource = AlterConfigsResourceRequest(resource_type=kind, resource_name=name, configs=rows)
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


@CHANGES.story
def change_topics(talk: Talk) -> None:
    talk.create("changed")

    def see(step: str) -> None:
        talk.settle()
        keys = ("retention.ms", "cleanup.policy", "segment.bytes", "follower.replication.throttled.replicas")
        talk.ask(f"{step}: seen", describe(TOPIC, "changed", *keys))

    talk.same("set", change(TOPIC, "changed", ("retention.ms", SET, "1000")))
    see("set")
    talk.ask("append to a list", change(TOPIC, "changed", ("cleanup.policy", APPEND, "compact")))
    see("appended")
    talk.ask("append again", change(TOPIC, "changed", ("cleanup.policy", APPEND, "compact")))
    talk.ask("subtract", change(TOPIC, "changed", ("cleanup.policy", SUBTRACT, "delete")))
    see("subtracted")
    talk.ask("subtract what is not in it", change(TOPIC, "changed", ("cleanup.policy", SUBTRACT, "delete")))
    talk.ask("subtract the last", change(TOPIC, "changed", ("cleanup.policy", SUBTRACT, "compact")))
    see("subtracted all")
    talk.ask("delete", change(TOPIC, "changed", ("retention.ms", DELETE, None)))
    talk.ask("delete what is not set", change(TOPIC, "changed", ("segment.bytes", DELETE, None)))
    talk.ask("delete with a value", change(TOPIC, "changed", ("cleanup.policy", DELETE, "compact")))
    see("deleted")
    two = (("retention.ms", SET, "5"), ("segment.bytes", SET, "2000000"))
    talk.ask("two at once", change(TOPIC, "changed", *two))
    talk.ask("nothing to change", change(TOPIC, "changed"))
    talk.ask("only validated", change(TOPIC, "changed", ("retention.ms", SET, "9"), validate_only=True))
    see("validated")


@CHANGES.story
def change_topics_wrongly(talk: Talk) -> None:
    talk.create("resists")
    wrong: dict[str, Change] = {
        "unknown name": ("no.such.setting", SET, "1"),
        "delete an unknown name": ("no.such.setting", DELETE, None),
        "bad number": ("retention.ms", SET, "many"),
        "out of range": ("retention.ms", SET, "-2"),
        "empty number": ("retention.ms", SET, ""),
        "null": ("retention.ms", SET, None),
        "append to a number": ("retention.ms", APPEND, "1"),
        "append null": ("cleanup.policy", APPEND, None),
        "append a bad choice": ("cleanup.policy", APPEND, "burn"),
        "append nothing": ("cleanup.policy", APPEND, ""),
        "subtract from a number": ("retention.ms", SUBTRACT, "1"),
        "unknown operation": ("retention.ms", 4, "1"),
        "negative operation": ("retention.ms", -1, "1"),
        "setting of brokers": ("log.retention.ms", SET, "1"),
        "empty name": ("", SET, "1"),
        "remote storage": ("remote.storage.enable", SET, "true"),
    }
    for step, row in wrong.items():
        talk.ask(step, change(TOPIC, "resists", row))
    doubled = (("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    talk.same("a key twice", change(TOPIC, "resists", *doubled))
    one_bad = (("retention.ms", SET, "1"), ("segment.bytes", SET, "x"))
    talk.ask("one good, one bad", change(TOPIC, "resists", *one_bad))
    talk.same("unknown topic", change(TOPIC, "nobody-made-this", ("retention.ms", SET, "1")))
    talk.ask("bad topic name", change(TOPIC, "a b", ("retention.ms", SET, "1")))
    talk.ask("empty topic name", change(TOPIC, "", ("retention.ms", SET, "1")))
    twice = change(TOPIC, "resists", ("retention.ms", SET, "1"))
    twice.resources += change(TOPIC, "resists", ("segment.bytes", SET, "3000000")).resources
    talk.same("a topic twice", twice)
    both = change(TOPIC, "resists", ("retention.ms", SET, "77"))
    both.resources += change(TOPIC, "nobody-made-this", ("retention.ms", SET, "1")).resources
    talk.ask("a known and an unknown topic", both)
    talk.settle()
    talk.ask("what is set now", describe(TOPIC, "resists", "retention.ms", "segment.bytes", "cleanup.policy"))
    for kind in (0, 1, 3, 64, -1):
        talk.ask(f"type {kind}", change(kind, "x", ("retention.ms", SET, "1")))
    talk.ask("nothing", IncrementalAlterConfigsRequest(resources=[]))


@CHANGES.story
def change_brokers(talk: Talk) -> None:
    def see(step: str, key: str, name: str, value: str | None) -> None:
        asked = describe(BROKER, name, key, synonyms=True)

        def is_there(answer: object) -> bool:
            rows = answer.results[0].configs  # type: ignore[attr-defined]
            return [row.value for row in rows] == ([] if value is None else [value])

        talk.until(asked, 4, is_there)
        talk.ask(f"{step}: seen", asked)

    key = "message.max.bytes"
    talk.same("set of one broker", change(BROKER, "1", (key, SET, "2000000")))
    see("of one broker", key, "1", "2000000")
    talk.ask("set by default", change(BROKER, "", (key, SET, "3000000")))
    see("by default", key, "", "3000000")
    talk.ask("both: seen", describe(BROKER, "1", key, synonyms=True))
    talk.ask("delete of one broker", change(BROKER, "1", (key, DELETE, None)))
    see("deleted", key, "1", "3000000")
    talk.ask("delete by default", change(BROKER, "", (key, DELETE, None)))
    see("deleted by default", key, "", None)
    talk.ask("a default of topics", change(BROKER, "", ("log.retention.ms", SET, "123456789")))
    see("a default of topics", "log.retention.ms", "", "123456789")
    talk.create("inherits")
    talk.ask("inherited by a topic", describe(TOPIC, "inherits", "retention.ms", synonyms=True))
    talk.ask("deleted again", change(BROKER, "", ("log.retention.ms", DELETE, None)))
    see("deleted again", "log.retention.ms", "", None)


@CHANGES.story
def change_brokers_wrongly(talk: Talk) -> None:
    wrong: dict[str, Change] = {
        "read-only": ("num.partitions", SET, "3"),
        "read-only node id": ("node.id", SET, "3"),
        "unknown name": ("no.such.setting", SET, "1"),
        "delete an unknown name": ("no.such.setting", DELETE, None),
        "bad number": ("message.max.bytes", SET, "many"),
        "out of range": ("message.max.bytes", SET, "-1"),
        "setting of topics": ("retention.ms", SET, "1"),
        "too many threads at once": ("num.io.threads", SET, "1000"),
        "null": ("message.max.bytes", SET, None),
    }
    for step, row in wrong.items():
        talk.ask(f"{step}, of one broker", change(BROKER, "1", row, validate_only=True))
        talk.ask(f"{step}, by default", change(BROKER, "", row, validate_only=True))
    talk.ask("another broker", change(BROKER, "7", ("message.max.bytes", SET, "2"), validate_only=True))
    talk.ask("no number", change(BROKER, "one", ("message.max.bytes", SET, "2"), validate_only=True))
    threads = ("log.cleaner.threads", SET, "2")
    talk.ask("good threads", change(BROKER, "1", threads, validate_only=True))
    of_one = ("ssl.keystore.location", SET, "/tmp/x")
    talk.ask("a setting of one broker, by default", change(BROKER, "", of_one, validate_only=True))


@CHANGES.story
def replace_topics(talk: Talk) -> None:
    talk.create("replaced", retention_ms=1000, segment_bytes=2_000_000)
    talk.same("replace", replace(TOPIC, "replaced", retention_ms="2000"))
    talk.settle()
    talk.ask("seen", describe(TOPIC, "replaced", "retention.ms", "segment.bytes"))
    talk.ask("only validated", replace(TOPIC, "replaced", retention_ms="3000", validate_only=True))
    talk.same("unknown name", replace(TOPIC, "replaced", no_such="1"))
    talk.same("bad value", replace(TOPIC, "replaced", retention_ms="many"))
    talk.same("null", replace(TOPIC, "replaced", retention_ms=None))
    talk.same("unknown topic", replace(TOPIC, "nobody-made-this", retention_ms="1"))
    # A topic twice is not among them: Kafka never answers that.
    doubled = replace(TOPIC, "replaced", retention_ms="1")
    doubled.resources[0].configs += doubled.resources[0].configs
    talk.same("a key twice", doubled)
    talk.ask("nothing left", replace(TOPIC, "replaced"))
    talk.settle()
    talk.ask("seen at last", describe(TOPIC, "replaced", "retention.ms", "segment.bytes"))
    talk.ask("read-only of a broker", replace(BROKER, "1", num_partitions="3", validate_only=True))
    for kind in (0, 3, 64):
        talk.ask(f"type {kind}", replace(kind, "x", retention_ms="1"))


@CHANGES.story
def change_metrics(talk: Talk) -> None:
    talk.ask("a subscription", change(METRICS, "watch", ("interval.ms", SET, "60000")))
    for step, row in {
        "unknown name": ("no.such.setting", SET, "1"),
        "interval too short": ("interval.ms", SET, "1"),
        "bad match": ("match", SET, "nothing=here"),
        "metrics": ("metrics", SET, "org.apache.kafka"),
    }.items():
        talk.ask(f"{step} of a subscription", change(METRICS, "watch", row))
    talk.ask("a subscription without a name", change(METRICS, "", ("interval.ms", SET, "60000")))
    talk.settle()
    talk.ask("the subscription: seen", describe(METRICS, "watch", synonyms=True))


@CHANGES.story
def change_groups(talk: Talk) -> None:
    session, interval = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

    def see(step: str, group: str = "team") -> None:
        talk.settle()
        talk.ask(f"{step}: seen", describe(GROUP, group, session, interval, synonyms=True))

    talk.same("set", change(GROUP, "team", (session, SET, "50000")))
    see("set")
    wrong: dict[str, Change] = {
        "unknown name": ("no.such.setting", SET, "1"),
        "delete an unknown name": ("no.such.setting", DELETE, None),
        "bad number": (session, SET, "many"),
        "empty number": (session, SET, ""),
        "null": (session, SET, None),
        "below the broker's bounds": (session, SET, "44999"),
        "above the broker's bounds": (session, SET, "60001"),
        "not above the heartbeats": (session, SET, "1"),
        "negative": (session, SET, "-1"),
        "heartbeats below their bounds": (interval, SET, "4999"),
        "heartbeats above their bounds": (interval, SET, "15001"),
        "an interval above its bounds": ("consumer.assignment.interval.ms", SET, "15001"),
        "a negative interval": ("consumer.assignment.interval.ms", SET, "-1"),
        "append to a number": (session, APPEND, "1"),
        "a setting of topics": ("retention.ms", SET, "1"),
        "a setting of brokers": ("group.consumer.session.timeout.ms", SET, "50000"),
    }
    for step, row in wrong.items():
        talk.ask(step, change(GROUP, "team", row))
    talk.ask("no name", change(GROUP, "", (session, SET, "50000")))
    talk.ask("no name, nothing to change", change(GROUP, ""))
    talk.ask("only validated", change(GROUP, "team", (session, SET, "60000"), validate_only=True))
    talk.ask("two at once", change(GROUP, "team", (session, SET, "55000"), (interval, SET, "6000")))
    see("two")
    talk.ask("delete", change(GROUP, "team", (session, DELETE, None)))
    see("deleted")
    talk.same("replace", replace(GROUP, "crew", consumer_session_timeout_ms="46000"))
    talk.same("replace with a bad value", replace(GROUP, "crew", consumer_session_timeout_ms="1"))
    talk.same("replace with nothing", replace(GROUP, "nobody"))
    see("replaced", "crew")
    see("unknown", "nobody")
    talk.ask("all of a group", describe(GROUP, "team", *OF_CONSUMERS, docs=True))


@CHANGES.story
def list_what_was_changed(talk: Talk) -> None:
    talk.same("the first version", ListConfigResourcesRequest(), [0])
    talk.ask("all types", ListConfigResourcesRequest(resource_types=[]))
    talk.ask("groups", ListConfigResourcesRequest(resource_types=[GROUP]))
