"""The checklist with the Java client that Apache publishes, against our broker and against Apache Kafka.

The client runs in processes of its own: tests/interop/clients/java. Needs Java and Maven as the other tests
here do.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.clients.entries import Entry, all_entries, skip_if_impossible, stage_name
from support.clients.java_client import JAVA
from support.clients.stage import Broker, Stage
from support.clients.table import PROPERTY
from support.kafka_broker import KafkaBroker
from support.kafka_tools import kafka_tools
from support.our_broker import OurBroker

# So that a topic that was deleted stays away; the story of topics that are created by producing has its own.
SHARED_SETTINGS = {"auto.create.topics.enable": "false"}


def on_own_broker(own: bool) -> pytest.MarkDecorator:
    entries = [entry for entry in all_entries() if entry.own_broker is own]
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


@pytest.fixture(scope="module")
def our_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path_factory.mktemp("ours"), settings=SHARED_SETTINGS)
    with broker.running():
        yield broker


@pytest.fixture(scope="module")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=SHARED_SETTINGS)
    broker.format()
    with broker.running():
        yield broker


def carry_out(entry: Entry, broker: Broker) -> None:
    entry.carry_out(JAVA, Stage(broker, stage_name(entry, JAVA)))


@on_own_broker(False)
def test_the_java_client_can(
    entry: Entry, our_broker: OurBroker, record_property: Callable[[str, object], None]
) -> None:
    record_property(PROPERTY, [JAVA.name, entry.name])
    skip_if_impossible(entry, JAVA)
    carry_out(entry, our_broker)


@on_own_broker(True)
def test_the_java_client_with_a_broker_of_its_own_can(
    entry: Entry, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(PROPERTY, [JAVA.name, entry.name])
    skip_if_impossible(entry, JAVA)
    broker = OurBroker(tmp_path)
    broker.start()
    try:
        carry_out(entry, broker)
        broker.stop()
    finally:
        broker.kill()


@on_own_broker(False)
def test_the_java_client_on_kafka_can(entry: Entry, kafka_broker: KafkaBroker) -> None:
    skip_if_impossible(entry, JAVA)
    carry_out(entry, kafka_broker)


@on_own_broker(True)
def test_the_java_client_on_a_kafka_of_its_own_can(entry: Entry, tmp_path: Path) -> None:
    skip_if_impossible(entry, JAVA)
    broker = KafkaBroker(kafka_tools(), tmp_path)
    broker.format()
    with broker.running():
        carry_out(entry, broker)
