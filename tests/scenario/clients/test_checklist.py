"""Unmodified clients and one checklist: every entry is told with every client, against our broker.

What a client has no way to do is skipped with the reason. tests/interop/test_checklist_on_kafka.py tells the
same stories to Apache Kafka. BARNABAS_CLIENTS_TABLE=FILE writes down the outcome: see table_writer.py.
"""

from collections.abc import Callable, Iterator
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
from support.clients.table import PROPERTY
from support.process.our_broker import OurBroker

pytestmark = pytest.mark.filterwarnings(SOCKETS_LEFT_OPEN)

# So that a topic that was deleted stays away; the story of topics that are created by producing has its own.
SHARED_SETTINGS = {"auto.create.topics.enable": "false", **GROUP_SETTINGS}

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


def on_own_broker(own: bool) -> pytest.MarkDecorator:
    entries = [entry for entry in all_entries() if entry.own_broker is own]
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path_factory.mktemp("shared"), settings=SHARED_SETTINGS)
    with broker.running():
        yield broker


@on_own_broker(False)
@each_client
def test_a_client_can(
    client: Client,
    entry: Entry,
    shared_broker: OurBroker,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> None:
    record_property(PROPERTY, [client.name, entry.name])
    skip_if_impossible(entry, client)
    entry.carry_out(client, Stage(shared_broker, stage_name(entry, client)))


@on_own_broker(True)
@each_client
def test_a_client_with_its_own_broker_can(
    client: Client, entry: Entry, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(PROPERTY, [client.name, entry.name])
    skip_if_impossible(entry, client)
    broker = OurBroker(tmp_path)
    broker.start()
    try:
        entry.carry_out(client, Stage(broker, stage_name(entry, client)))
        broker.stop()
    finally:
        broker.kill()
