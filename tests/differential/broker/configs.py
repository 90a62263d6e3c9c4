"""Settings as they are: DescribeConfigs, ListConfigResources."""

from barnabas.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    ListConfigResourcesRequest,
)
from differential.broker.talk import Family, Talk

CONFIGS = Family("configs")
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

SOME_OF_A_BROKER = (
    "num.partitions", "log.retention.hours", "log.retention.ms", "log.segment.bytes", "compression.type",
    "message.max.bytes", "num.io.threads", "auto.create.topics.enable", "log.cleanup.policy",
    "ssl.keystore.password", "ssl.key.password", "background.threads", "log.cleaner.threads",
    "min.insync.replicas", "default.replication.factor", "unclean.leader.election.enable",
)  # fmt: skip


def describe(
    kind: int, name: str, *keys: str, synonyms: bool = False, docs: bool = False
) -> DescribeConfigsRequest:
    """No keys mean all of them."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms, include_documentation=docs)


@CONFIGS.story
def describe_topics(talk: Talk) -> None:
    talk.create("described", retention_ms=1234, cleanup_policy="compact,delete")
    talk.same("all", describe(TOPIC, "described"))
    talk.same("all with synonyms", describe(TOPIC, "described", synonyms=True), [1, 4])
    talk.same("all with documentation", describe(TOPIC, "described", docs=True), [3, 4])
    talk.same("one", describe(TOPIC, "described", "retention.ms", synonyms=True))
    talk.same("one that is inherited", describe(TOPIC, "described", "segment.bytes", synonyms=True))
    for key in (
        "min.insync.replicas",
        "compression.type",
        "retention.bytes",
        "unclean.leader.election.enable",
    ):
        talk.ask(f"synonyms of {key}", describe(TOPIC, "described", key, synonyms=True))
    talk.ask("one that does not exist", describe(TOPIC, "described", "no.such.setting"))
    talk.ask("one of brokers", describe(TOPIC, "described", "log.retention.ms"))
    talk.ask("one twice", describe(TOPIC, "described", "retention.ms", "retention.ms"))
    talk.same("unknown topic", describe(TOPIC, "nobody-made-this"))
    talk.same("bad name", describe(TOPIC, "a b"), [1, 4])
    talk.same("empty name", describe(TOPIC, ""), [1, 4])
    none = describe(TOPIC, "described")
    none.resources[0].configuration_keys = []
    talk.same("an empty list of keys", none, [1, 4])
    twice = describe(TOPIC, "described", "retention.ms")
    twice.resources += describe(TOPIC, "described", "segment.bytes").resources
    talk.ask("a topic twice", twice)
    talk.ask("nothing", DescribeConfigsRequest(resources=[]))


@CONFIGS.story
def describe_brokers(talk: Talk) -> None:
    keys = SOME_OF_A_BROKER
    talk.same("some", describe(BROKER, "1", *keys), [1, 3, 4])
    talk.ask("some with synonyms", describe(BROKER, "1", *keys, synonyms=True))
    talk.ask("some with documentation", describe(BROKER, "1", *keys, docs=True))
    talk.ask("that does not exist", describe(BROKER, "1", "no.such.setting"))
    talk.ask("of topics", describe(BROKER, "1", "retention.ms"))
    talk.ask("the default broker", describe(BROKER, ""))
    talk.ask("the default broker, some", describe(BROKER, "", "num.io.threads", "min.insync.replicas"))
    talk.same("another broker", describe(BROKER, "7"), [1, 4])
    talk.ask("a broker that is no number", describe(BROKER, "one"))
    talk.ask("a negative broker", describe(BROKER, "-1"))


@CONFIGS.story
def describe_all_of_a_broker(talk: Talk) -> None:
    answer = talk.quietly(describe(BROKER, "1", docs=True), 4)
    rows = [row for row in answer.results[0].configs if not _is_of_this_node(row.name)]
    talk.keep("types", [{"name": row.name, "configType": row.config_type} for row in rows])
    talk.keep("read only", [{"name": row.name, "readOnly": row.read_only} for row in rows])
    talk.keep("sensitive", [row.name for row in rows if row.is_sensitive])
    talk.keep("values", [{"name": row.name, "value": row.value, "source": row.config_source} for row in rows])
    talk.keep("not documented", [row.name for row in rows if not row.documentation])


def _is_of_this_node(name: str) -> bool:
    """Whether the value depends on how this very node was started."""
    starts = (
        "controller.",
        "offsets.topic.",
        "transaction.state.log.",
        "listener",
        "advertised.",
        "log.dir",
        "node.id",
        "broker.id",
    )
    return name.startswith(starts) or name in (
        "process.roles",
        "metadata.log.dir",
        "inter.broker.listener.name",
    )


@CONFIGS.story
def describe_other_resources(talk: Talk) -> None:
    for kind in (0, 1, 3, 5, METRICS, GROUP, 64, -1):
        talk.same(f"type {kind}", describe(kind, "x"), [1, 4])
    talk.ask("metrics without a name", describe(METRICS, ""))
    talk.ask("a group without a name", describe(GROUP, ""))


@CONFIGS.story
def list_config_resources(talk: Talk) -> None:
    talk.same("the first version", ListConfigResourcesRequest(), [0])
    talk.ask("all types", ListConfigResourcesRequest(resource_types=[]))
    for kind in (TOPIC, BROKER, LOGGER, METRICS, GROUP, 0, 1, 64, -1):
        talk.ask(f"type {kind}", ListConfigResourcesRequest(resource_types=[kind]))
    talk.ask("two types", ListConfigResourcesRequest(resource_types=[TOPIC, BROKER]))
    talk.ask("one twice", ListConfigResourcesRequest(resource_types=[BROKER, BROKER]))
