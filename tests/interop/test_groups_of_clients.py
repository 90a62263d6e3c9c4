"""Group consumers of clients in Python, Java and Go, under load, against our broker and against Apache Kafka.

What tests/scenario/groups runs with our broker and clients in Python is here run with Kafka as well: so that
it is known to hold there. Where a tool-chain is missing, its clients are skipped with that reason.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from support.clients.remote import CannotBuild
from support.clients.stage import Broker
from support.group_runs.kinds import (
    CONFLUENT,
    CONFLUENT_COOPERATIVE,
    CONFLUENT_RANGE,
    JAVA,
    OTHER_KINDS,
    PYTHON_KINDS,
    Kind,
)
from support.group_runs.run import BROKER_SETTINGS, group_run
from support.group_runs.stories import (
    Story,
    all_at_once,
    members_come_and_go,
    static_members_restart,
    the_protocol_changes,
)
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools
from support.process.our_broker import OurBroker

MORE_KINDS = (CONFLUENT_COOPERATIVE, CONFLUENT_RANGE, *OTHER_KINDS)
STORIES = (members_come_and_go, all_at_once, static_members_restart)
# The scenarios have the others.
WITH_OURS = [
    *product(MORE_KINDS, STORIES),
    *product(PYTHON_KINDS, [all_at_once]),
    (JAVA, the_protocol_changes),
]
WITH_KAFKA = [
    *product((*PYTHON_KINDS, *MORE_KINDS), STORIES),
    *product((CONFLUENT, JAVA), [the_protocol_changes]),
]


def each(cases: Sequence[tuple[Kind, Story]]) -> pytest.MarkDecorator:
    ids = [f"{kind.name}-{getattr(story, '__name__', 'story')}" for kind, story in cases]
    return pytest.mark.parametrize(("kind", "story"), cases, ids=ids)


@pytest.fixture(scope="module")
def our_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path_factory.mktemp("ours"), settings=BROKER_SETTINGS)
    with broker.running():
        yield broker


@pytest.fixture(scope="module")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(kafka_tools(), tmp_path_factory.mktemp("kafka"), settings=BROKER_SETTINGS)
    broker.format()
    with broker.running():
        yield broker


def tell(story: Story, kind: Kind, broker: Broker, directory: Path) -> None:
    if story is static_members_restart and kind.no_static:
        pytest.skip(kind.no_static)
    try:
        kind.command()
    except CannotBuild as missing:
        pytest.skip(str(missing))
    with group_run(broker, kind, directory) as run:
        story(run)


@each(WITH_OURS)
def test_a_group_shares_partitions_of_our_broker(
    kind: Kind, story: Story, our_broker: OurBroker, tmp_path: Path
) -> None:
    tell(story, kind, our_broker, tmp_path)


@each(WITH_KAFKA)
def test_a_group_shares_partitions_of_kafka(
    kind: Kind, story: Story, kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    tell(story, kind, kafka_broker, tmp_path)
