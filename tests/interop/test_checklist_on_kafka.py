"""The checklist of clients against Apache Kafka 4.3: so that we know that the checklist itself is right.

Needs Java and Maven as the other tests here do. tests/scenario/clients/test_checklist.py asks the same of us.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clients.client import Client
from support.clients.entries import (
    CLIENTS,
    SOCKETS_LEFT_OPEN,
    Entry,
    all_entries,
    skip_if_impossible,
    stage_name,
)
from support.clients.stage import GROUP_SETTINGS, Stage
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools

pytestmark = pytest.mark.filterwarnings(SOCKETS_LEFT_OPEN)

# So that a topic that was deleted stays away; the story of topics that are created by producing has its own.
SHARED_SETTINGS = {"auto.create.topics.enable": "false", **GROUP_SETTINGS}

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


def on_own_broker(own: bool) -> pytest.MarkDecorator:
    entries = [entry for entry in all_entries() if entry.own_broker is own]
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    root = tmp_path_factory.mktemp("shared-kafka")
    broker = KafkaBroker(kafka_tools(), root, settings=SHARED_SETTINGS)
    broker.format()
    with broker.running():
        yield broker


@on_own_broker(False)
@each_client
def test_a_client_on_kafka_can(client: Client, entry: Entry, shared_broker: KafkaBroker) -> None:
    skip_if_impossible(entry, client)
    entry.carry_out(client, Stage(shared_broker, stage_name(entry, client)))


@on_own_broker(True)
@each_client
def test_a_client_on_its_own_kafka_can(client: Client, entry: Entry, tmp_path: Path) -> None:
    skip_if_impossible(entry, client)
    broker = KafkaBroker(kafka_tools(), tmp_path)
    broker.format()
    with broker.running():
        entry.carry_out(client, Stage(broker, stage_name(entry, client)))
