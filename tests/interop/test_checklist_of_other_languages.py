"""The checklist with clients of other languages, against our broker and against Apache Kafka.

The clients run in processes of their own, which are built on first use: tests/interop/clients. Where a
tool-chain is missing, its clients are skipped with that reason.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.clients.client import Client
from support.clients.entries import Entry, all_entries, skip_if_impossible, stage_name
from support.clients.other_languages import OTHER_LANGUAGES
from support.clients.stage import GROUP_SETTINGS, Broker, Stage
from support.clients.table import PROPERTY
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker

# So that a topic that was deleted stays away; the story of topics that are created by producing has its own.
SHARED_SETTINGS = {"auto.create.topics.enable": "false", **GROUP_SETTINGS}

each_client = pytest.mark.parametrize("client", OTHER_LANGUAGES, ids=lambda client: client.name)


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


def carry_out(entry: Entry, client: Client, broker: Broker) -> None:
    entry.carry_out(client, Stage(broker, stage_name(entry, client)))


@on_own_broker(False)
@each_client
def test_a_client_of_another_language_can(
    client: Client, entry: Entry, our_broker: OurBroker, record_property: Callable[[str, object], None]
) -> None:
    record_property(PROPERTY, [client.name, entry.name])
    skip_if_impossible(entry, client)
    carry_out(entry, client, our_broker)


@on_own_broker(True)
@each_client
def test_a_client_of_another_language_with_its_own_broker_can(
    client: Client, entry: Entry, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(PROPERTY, [client.name, entry.name])
    skip_if_impossible(entry, client)
    broker = OurBroker(tmp_path)
    broker.start()
    try:
        carry_out(entry, client, broker)
        broker.stop()
    finally:
        broker.kill()


@on_own_broker(False)
@each_client
def test_a_client_of_another_language_on_kafka_can(
    client: Client, entry: Entry, kafka_broker: KafkaBroker
) -> None:
    skip_if_impossible(entry, client)
    carry_out(entry, client, kafka_broker)


@on_own_broker(True)
@each_client
def test_a_client_of_another_language_on_its_own_kafka_can(
    client: Client, entry: Entry, tmp_path: Path
) -> None:
    skip_if_impossible(entry, client)
    broker = KafkaBroker(kafka_tools(), tmp_path)
    broker.format()
    with broker.running():
        carry_out(entry, client, broker)
