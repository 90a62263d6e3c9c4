"""One broker per module, and the tools with its address."""

from collections.abc import Iterator

import pytest

from support.process.our_broker import OurBroker
from support.process.tool_runs import Tools


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurBroker]:
    broker = OurBroker(tmp_path_factory.mktemp("tools"), settings={"auto.create.topics.enable": "false"})
    with broker.running():
        yield broker


@pytest.fixture
def tool(broker: OurBroker) -> Iterator[Tools]:
    """The tools; topics that a test creates are deleted after it."""
    tools = Tools(broker.address)
    yield tools
    assert tools("topics", "--delete", "--topic", ".*", "--if-exists").code == 0
