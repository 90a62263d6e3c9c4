"""Group consumers of ours with our broker: alone, and together with confluent-kafka's in one group.

tests/interop/test_group_consumer_on_kafka.py is the same with Apache Kafka.
"""

from collections.abc import Iterator

import pytest

from support.group.sharing import BROKER_SETTINGS, CASES, share
from support.process.our_broker import OurBroker


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with OurBroker(tmp_path_factory.mktemp("ours"), settings=BROKER_SETTINGS).running() as address:
        yield address


@pytest.mark.parametrize("case", CASES)
def test_members_share_partitions_while_others_join_and_leave(address: str, case: str) -> None:
    share(address, case)
