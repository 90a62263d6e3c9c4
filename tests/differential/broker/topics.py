"""CreateTopics, DeleteTopics and CreatePartitions, with everything that can be wrong in them."""

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from differential.broker.cluster import by_name
from differential.broker.talk import Family, Talk

TOPICS = Family("topics")
NO_TOPIC = Uuid(b"there is no such")


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assigned: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    """Underscores in the names of settings mean dots."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assigned or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=configs[key]) for key in configs],
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=validate_only)


def delete(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)


def delete_states(*states: tuple[str | None, Uuid]) -> DeleteTopicsRequest:
    topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
    return DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


def grow(
    name: str, count: int, assigned: list[list[int]] | None = None, *, validate_only: bool = False
) -> CreatePartitionsRequest:
    rows = None if assigned is None else [CreatePartitionsAssignment(broker_ids=row) for row in assigned]
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=rows)
    return CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=validate_only)


@TOPICS.story
def create_with_counts(talk: Talk) -> None:
    talk.each("three partitions", lambda version: create(topic(f"counted-{version}", 3)))
    talk.each("again", lambda version: create(topic(f"counted-{version}", 3)))
    talk.each("defaults", lambda version: create(topic(f"defaulted-{version}", -1, -1)), range(4, 8))
    talk.each("only validated", lambda version: create(topic("never-made"), validate_only=True))
    talk.ask("validated, but there", create(topic("counted-7"), validate_only=True))
    talk.ask("nothing asked", create())
    talk.ask("two at once", create(topic("pair-a"), topic("pair-b", 2)))
    talk.ask("one good, one bad", create(topic("good-one"), topic("bad one")))
    talk.settle()
    talk.ask("what is there now", by_name("never-made", "pair-a", "pair-b", "good-one", "bad one"))


@TOPICS.story
def create_with_bad_counts(talk: Talk) -> None:
    for partitions in (0, -2, -2_147_483_648):
        talk.same(f"{partitions} partitions", create(topic("bad-counts", partitions)), [4, 7])
    talk.ask("more partitions than a request may make", create(topic("bad-counts", 10_001)))
    talk.ask("two billion partitions", create(topic("bad-counts", 2_147_483_647)))
    many = [topic(f"many-{index}", 4_000) for index in range(3)]
    talk.ask("too many in sum", create(*many, validate_only=True))
    for replicas in (0, -2, 2, 32_767):
        talk.same(f"{replicas} replicas", create(topic("bad-counts", 1, replicas)), [4, 7])
    talk.ask("both bad", create(topic("bad-counts", 0, 0)))
    talk.same("defaults before they were allowed", create(topic("old-defaults", -1, -1)), [2, 3])


@TOPICS.story
def create_with_bad_names(talk: Talk) -> None:
    for name in ("", ".", "..", "with space", "a/b", "ü", "x" * 250):
        talk.same(f"name {name[:10]!r} of {len(name)}", create(topic(name)), [2, 7])
    talk.ask("the longest name", create(topic("y" * 249)))
    talk.ask("a name with dots", create(topic("dotted.name.one")))
    talk.ask("collides in metrics", create(topic("dotted_name.one")))
    talk.ask("collide within a request", create(topic("p.q"), topic("p_q")))
    talk.ask("twice in a request", create(topic("twice"), topic("twice", 2), topic("once")))
    talk.ask("internal name", create(topic("__transaction_state")))
    talk.ask("name of the metadata log", create(topic("__cluster_metadata")))


@TOPICS.story
def create_with_assignments(talk: Talk) -> None:
    talk.each(
        "assigned", lambda version: create(topic(f"assigned-{version}", -1, -1, assigned={0: [1], 1: [1]}))
    )
    wrong: dict[str, CreatableTopic] = {
        "counts as well": topic("wrong", 2, -1, assigned={0: [1], 1: [1]}),
        "replication factor as well": topic("wrong", -1, 1, assigned={0: [1]}),
        "both as well": topic("wrong", 1, 1, assigned={0: [1]}),
        "no partition zero": topic("wrong", -1, -1, assigned={1: [1], 2: [1]}),
        "a hole": topic("wrong", -1, -1, assigned={0: [1], 2: [1]}),
        "a negative partition": topic("wrong", -1, -1, assigned={-1: [1]}),
        "unknown broker": topic("wrong", -1, -1, assigned={0: [7]}),
        "a broker twice": topic("wrong", -1, -1, assigned={0: [1, 1]}),
        "no brokers": topic("wrong", -1, -1, assigned={0: []}),
        "negative broker": topic("wrong", -1, -1, assigned={0: [-1]}),
        "replication factors differ": topic("wrong", -1, -1, assigned={0: [1], 1: [1, 2]}),
    }
    for step, asked in wrong.items():
        talk.ask(step, create(asked))
    doubled = topic("wrong", -1, -1, assigned={0: [1]})
    doubled.assignments.append(CreatableReplicaAssignment(partition_index=0, broker_ids=[1]))
    talk.ask("a partition twice", create(doubled))


@TOPICS.story
def create_with_configs(talk: Talk) -> None:

    def good(version: int) -> CreateTopicsRequest:
        return create(
            topic(
                f"configured-{version}",
                cleanup_policy="compact",
                retention_ms="1000",
                compression_type="zstd",
            )
        )

    talk.each("good ones", good)
    bad: dict[str, tuple[str, str | None]] = {
        "unknown name": ("no.such.setting", "1"),
        "bad number": ("retention.ms", "many"),
        "number out of range": ("retention.ms", "-2"),
        "number too large": ("segment.bytes", "99999999999"),
        "number with spaces": ("retention.ms", " 1000 "),
        "bad choice": ("cleanup.policy", "burn"),
        "two choices": ("cleanup.policy", "compact,delete"),
        "no choice": ("cleanup.policy", ""),
        "choice in capitals": ("compression.type", "ZSTD"),
        "bad boolean": ("preallocate", "yes"),
        "boolean in capitals": ("preallocate", "TRUE"),
        "bad ratio": ("min.cleanable.dirty.ratio", "1.5"),
        "null": ("retention.ms", None),
        "null of unknown": ("no.such.setting", None),
        "setting of brokers": ("log.retention.ms", "1000"),
        "gone since 4.0": ("message.format.version", "3.0"),
        "too many in-sync replicas": ("min.insync.replicas", "2"),
        "in-sync replicas of zero": ("min.insync.replicas", "0"),
        "remote storage without the system": ("remote.storage.enable", "true"),
        "throttled replicas": ("leader.replication.throttled.replicas", "0:1,1:1"),
        "bad throttled replicas": ("leader.replication.throttled.replicas", "one"),
        "local retention above retention": ("local.retention.ms", "999999999999"),
        "segment of one byte": ("segment.bytes", "1"),
        "smallest segment": ("segment.bytes", "1048576"),
        "empty name": ("", "1"),
    }
    for number, (step, (name, value)) in enumerate(bad.items()):
        asked = topic(f"config-{number}")
        asked.configs = [CreatableTopicConfig(name=name, value=value)]
        talk.ask(step, create(asked))
    twice = topic("config-twice", retention_ms="1000")
    twice.configs.append(CreatableTopicConfig(name="retention.ms", value="2000"))
    talk.ask("a setting twice", create(twice))
    talk.ask("validated only", create(topic("config-not", retention_ms="1000"), validate_only=True))


@TOPICS.story
def delete_by_name(talk: Talk) -> None:
    for version in range(1, 6):
        talk.create(f"doomed-{version}")
        talk.ask(f"known v{version}", delete(f"doomed-{version}"), version)
        talk.ask(f"and again v{version}", delete(f"doomed-{version}"), version)
    talk.create("doomed-twice")
    talk.ask("twice in a request", delete("doomed-twice", "doomed-twice"), 5)
    talk.ask("bad name", delete("a b"), 5)
    talk.ask("empty name", delete(""), 5)
    talk.ask("nothing", delete(), 5)
    talk.create("doomed-6")
    talk.ask("a known and an unknown one", delete("doomed-6", "nobody-made-this"), 5)
    talk.settle()
    talk.ask("what is there now", by_name("doomed-1", "doomed-5", "doomed-twice"))


@TOPICS.story
def delete_by_id(talk: Talk) -> None:
    first, second, third = (talk.create(f"doomed-id-{number}") for number in range(3))
    talk.ask("by id", delete_states((None, first)))
    talk.ask("and again", delete_states((None, first)))
    talk.ask("by name in version 6", delete_states(("doomed-id-1", ZERO_UUID)))
    talk.ask("by name, unknown", delete_states(("nobody-made-this", ZERO_UUID)))
    talk.ask("by id, unknown", delete_states((None, NO_TOPIC)))
    talk.ask("by both", delete_states(("doomed-id-2", third)))
    talk.ask("by neither", delete_states((None, ZERO_UUID)))
    talk.ask("twice by id", delete_states((None, third), (None, third)))
    talk.ask("once by id and once by name", delete_states((None, third), ("doomed-id-2", ZERO_UUID)))
    talk.ask("an id that is gone and a good name", delete_states((None, second), ("doomed-id-2", ZERO_UUID)))


@TOPICS.story
def create_partitions(talk: Talk) -> None:
    for version in range(4):
        talk.create(f"growing-{version}")
        talk.ask(f"more v{version}", grow(f"growing-{version}", 3), version)
        talk.ask(f"with assignments v{version}", grow(f"growing-{version}", 5, [[1], [1]]), version)
    wrong = {
        "the same count": grow("growing-3", 5),
        "fewer": grow("growing-3", 4),
        "zero": grow("growing-3", 0),
        "negative": grow("growing-3", -1),
        "unknown topic": grow("nobody-made-this", 3),
        "bad name": grow("a b", 3),
        "too few assignments": grow("growing-3", 7, [[1]]),
        "too many assignments": grow("growing-3", 6, [[1], [1]]),
        "no assignments but not null": grow("growing-3", 6, []),
        "unknown broker": grow("growing-3", 6, [[7]]),
        "a broker twice": grow("growing-3", 6, [[1, 1]]),
        "no brokers": grow("growing-3", 6, [[]]),
        "another replication factor": grow("growing-3", 6, [[1, 2]]),
        "only validated": grow("growing-3", 9, validate_only=True),
        "only validated and wrong": grow("growing-3", 1, validate_only=True),
    }
    for step, asked in wrong.items():
        talk.ask(step, asked)
    both = grow("growing-3", 6)
    both.topics += grow("growing-3", 7).topics + grow("growing-2", 6).topics
    talk.ask("a topic twice", both)
    talk.settle()
    talk.ask("what is there now", by_name("growing-2", "growing-3"))
