"""Group consumers of unmodified clients share partitions of our broker, under load: no loss and no overlap.

Each member is a process, so that it can be killed; what each did is checked when all is over. See
support.group_runs. The other stories and clients, and Apache Kafka, are in tests/interop/test_groups_*.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.group_runs.kinds import CONFLUENT, CONFLUENT_CONSUMER, PYTHON_KINDS, Kind
from support.group_runs.run import BROKER_SETTINGS, group_run
from support.group_runs.stories import (
    members_come_and_go,
    static_members_restart,
    the_broker_crashes,
    the_protocol_changes,
)
from support.process.our_broker import OurBroker

each_kind = pytest.mark.parametrize("kind", PYTHON_KINDS, ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path_factory.mktemp("groups"), settings=BROKER_SETTINGS)
    with broker.running():
        yield broker


@each_kind
def test_no_partition_is_lost_or_shared_while_members_join_and_leave(
    kind: Kind, broker: OurBroker, tmp_path: Path
) -> None:
    with group_run(broker, kind, tmp_path) as run:
        members_come_and_go(run)


@each_kind
def test_a_quick_restart_of_a_static_member_moves_no_partition(
    kind: Kind, broker: OurBroker, tmp_path: Path
) -> None:
    with group_run(broker, kind, tmp_path) as run:
        static_members_restart(run)


def test_a_group_changes_its_protocol_and_changes_back_under_load(broker: OurBroker, tmp_path: Path) -> None:
    with group_run(broker, CONFLUENT, tmp_path) as run:
        the_protocol_changes(run)


@pytest.mark.parametrize("kind", [CONFLUENT, CONFLUENT_CONSUMER], ids=lambda kind: kind.name)
def test_a_broker_that_crashes_still_has_its_groups(kind: Kind, tmp_path: Path) -> None:
    broker = OurBroker(tmp_path / "broker", settings=BROKER_SETTINGS)
    broker.start()
    try:
        with group_run(broker, kind, tmp_path) as run:
            the_broker_crashes(run)
        broker.stop()
    finally:
        broker.kill()
