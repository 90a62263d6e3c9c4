"""Random sequences of requests, compared with a model in dictionaries.

After every request the controller's image equals the image built from all records, and its topics,
partitions and settings equal those of the model. Brokers register, unregister and stop sending heartbeats.
"""

from collections.abc import Callable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.image import NO_LEADER, PartitionImage
from barnabas.protocol.messages.configs import (
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.replicas import (
    AlterPartitionPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopicData,
    BrokerState,
    ElectLeadersRequest,
)
from barnabas.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.transactions import AllocateProducerIdsRequest
from support.controllers import ActiveController, creatable

NAMES = ["a", "b", "a.b", "a_b", "bad name", ""]
GOOD = ["a", "b", "a.b", "a_b"]
BROKERS = [1, 2, 3]
SETTINGS = {"retention.ms": ["5", "-1"], "segment.ms": ["5"], "min.insync.replicas": ["1", "2"]}
STEPS = 60


class Story:
    """The expected state, and random requests that change it."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.world = ActiveController(seed=seed).with_brokers(*BROKERS)
        # Number of partitions and replicas of each topic.
        self.topics: dict[str, tuple[int, int]] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.next_producer_id = 0

    def run(self) -> None:
        actions: list[Callable[[], None]] = [
            self.create, self.create, self.delete, self.grow, self.configure, self.allocate,
            self.register, self.beat, self.beat, self.beat, self.shrink_or_grow_isr, self.elect, self.wait,
        ]  # fmt: skip
        for _ in range(STEPS):
            action = self.rng.choice(actions)
            action()
            self.check(action.__name__)

    def check(self, after: str) -> None:
        image = self.world.image
        assert image == self.world.replayed(), after
        found = {name: (len(t.partitions), len(t.partitions[0].replicas)) for name, t in image.topics.items()}
        assert found == self.topics, after
        configs = {one.name: dict(values) for one, values in image.configs.items() if one.type == 2}
        assert configs == {name: values for name, values in self.settings.items() if values}, after
        assert image.next_producer_id == self.next_producer_id, after
        for topic in image.topics.values():
            for partition in topic.partitions:
                self.check_partition(partition, f"{topic.name} after {after}")

    def check_partition(self, one: PartitionImage, where: str) -> None:
        brokers = self.world.image.brokers
        assert set(one.isr) <= set(one.replicas), where
        assert set(one.isr).isdisjoint(one.elr), where
        assert not any(brokers[broker].fenced for broker in one.isr), where
        if one.leader == NO_LEADER:
            assert not one.isr, where
        else:
            assert one.leader in one.isr, where

    # Topics

    def create(self) -> None:
        name, count, replicas = self.rng.choice(NAMES), self.rng.randint(-1, 4), self.rng.randint(1, 3)
        setting = self.rng.choice([*SETTINGS, None])
        configs = {} if setting is None else {setting: self.rng.choice(SETTINGS[setting])}
        only = self.rng.random() < 0.2
        usable = [one for one in self.world.image.brokers.values() if not one.in_controlled_shutdown]
        unified = {one.replace(".", "_") for one in self.topics}
        possible = (
            name in GOOD
            and name not in self.topics
            and (name in ("a", "b") or "a_b" not in unified)
            and count != 0
            and len(usable) >= replicas
            and any(not one.fenced for one in usable)
        )
        topic = creatable(name, count, replicas, configs={**configs})

        (result,) = self.world.ask(CreateTopicsRequest(topics=[topic], validate_only=only)).topics

        assert (result.error_code == 0) == possible, (topic, result)
        if possible and not only:
            self.topics[name] = (1 if count == -1 else count, replicas)
            self.settings[name] = dict(configs)

    def delete(self) -> None:
        name = self.rng.choice(GOOD)
        topic = self.world.image.topics.get(name)
        by_id = topic is not None and self.rng.random() < 0.5
        asked = DeleteTopicState(topic_id=topic.id) if topic and by_id else DeleteTopicState(name=name)

        (result,) = self.world.ask(DeleteTopicsRequest(topics=[asked])).responses

        assert (result.error_code == 0) == (name in self.topics)
        self.topics.pop(name, None)
        self.settings.pop(name, None)

    def grow(self) -> None:
        name, count = self.rng.choice(GOOD), self.rng.randint(0, 6)
        known = self.topics.get(name)
        usable = [one for one in self.world.image.brokers.values() if not one.in_controlled_shutdown]
        possible = (
            known is not None
            and count > known[0]
            and len(usable) >= known[1]
            and any(not one.fenced for one in usable)
        )
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)

        (result,) = self.world.ask(CreatePartitionsRequest(topics=[topic])).results

        assert (result.error_code == 0) == possible
        if possible and known is not None:
            self.topics[name] = (count, known[1])

    def configure(self) -> None:
        name, setting = self.rng.choice(GOOD), self.rng.choice(list(SETTINGS))
        value = self.rng.choice([*SETTINGS[setting], "nonsense", None])
        change = IncrementalAlterConfigsAlterableConfig(
            name=setting, config_operation=int(value is None), value=value
        )
        resource = IncrementalAlterConfigsAlterConfigsResource(
            resource_type=2, resource_name=name, configs=[change]
        )

        (result,) = self.world.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses

        assert (result.error_code == 0) == (name in self.topics and value != "nonsense")
        if result.error_code == 0:
            self.settings[name].pop(setting, None)
            if value is not None:
                self.settings[name][setting] = value

    # Brokers

    def register(self) -> None:
        broker = self.rng.choice(BROKERS)
        known = self.world.image.brokers.get(broker)
        epoch = known.epoch if known is not None and self.rng.random() < 0.5 else -1
        self.world.register(broker, incarnation=self.rng.randint(0, 1), previous_broker_epoch=epoch)

    def beat(self) -> None:
        if self.world.image.brokers:
            self.world.beat(
                self.rng.choice(list(self.world.image.brokers)),
                want_fence=self.rng.random() < 0.1,
                want_shut_down=self.rng.random() < 0.1,
            )

    def allocate(self) -> None:
        broker = self.world.image.brokers.get(self.rng.choice(BROKERS))
        if broker is not None:
            request = AllocateProducerIdsRequest(broker_id=broker.id, broker_epoch=broker.epoch)
            assert self.world.ask(request).producer_id_start == self.next_producer_id
            self.next_producer_id += 1000

    def wait(self) -> None:
        """Let time pass in which only some brokers send heartbeats."""
        alive = [one for one in self.world.image.brokers if self.rng.random() < 0.8]
        for _ in range(self.rng.choice([1, 3, 100])):
            for broker in alive:
                self.world.beat(broker)
            self.world.tick(4_000)

    # Leaders

    def shrink_or_grow_isr(self) -> None:
        led = [
            (topic, number)
            for topic in self.world.image.topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.leader >= 0
        ]
        if not led:
            return
        topic, number = self.rng.choice(led)
        partition = topic.partitions[number]
        others = [one for one in partition.replicas if one != partition.leader]
        isr = [partition.leader, *self.rng.sample(others, self.rng.randint(0, len(others)))]
        data = AlterPartitionPartitionData(
            partition_index=number,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=one) for one in isr],
        )
        leader = self.world.image.brokers[partition.leader]
        self.world.ask(
            AlterPartitionRequest(
                broker_id=leader.id,
                broker_epoch=leader.epoch,
                topics=[AlterPartitionTopicData(topic_id=topic.id, partitions=[data])],
            )
        )

    def elect(self) -> None:
        self.world.ask(ElectLeadersRequest(election_type=self.rng.randint(0, 1), topic_partitions=None))


@given(seed=st.integers(0, 2**32))
@settings(max_examples=100)
def test_the_image_equals_the_model_and_the_replayed_records(seed: int) -> None:
    Story(seed).run()
