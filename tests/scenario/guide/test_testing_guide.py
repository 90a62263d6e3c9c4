"""The examples of the guide to testing, run as they stand there: each is a file of tests for pytest.

A block of code whose first line names a file is one. There is no second copy of them. The page's pytest.ini
is the one that they run with.
"""

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker, WaitTimedOut
from support.docs.pages import DOCS, blocks
from support.docs.shell import shape
from support.kit import pytest_session
from support.spark.here import why_no_spark

GUIDE = DOCS / "guides" / "testing.md"
PYTHON = [block for block in blocks(GUIDE) if block.language == "python"]
EXAMPLES = {block.file: block.text for block in PYTHON}
[INI] = [block.text for block in blocks(GUIDE) if block.language == "ini"]
[MESSAGE] = [block.text for block in blocks(GUIDE) if block.language == "text"]
SHORT_S = 0.2


def test_the_guide_has_an_example_for_each_library() -> None:
    names = {"first", "confluent", "aiokafka", "faststream", "pyspark", "outage"}

    assert set(EXAMPLES) == {f"test_{name}.py" for name in names}


def test_every_block_of_python_is_an_example() -> None:
    assert len(PYTHON) == len(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_works_as_it_stands(name: str, tmp_path: Path) -> None:
    if name == "test_pyspark.py" and (reason := why_no_spark()) is not None:
        pytest.skip(reason)
    (tmp_path / name).write_text(EXAMPLES[name])
    (tmp_path / "pytest.ini").write_text(INI)

    ended = pytest_session(tmp_path, name, warnings="default")

    assert ended.code == 0, ended.out + ended.err
    assert re.search(r"\b1 passed\b", ended.out)


def test_the_ini_file_of_the_guide_sets_up_the_broker(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "test_ini.py").write_text(
        """
def test_partitions(barnabas_broker, barnabas_topic):
    with barnabas_broker.consumer() as consumer:
        assert len(consumer.assign_topic(barnabas_topic)) == 3
"""
    )

    ended = pytest_session(tmp_path, "test_ini.py")

    assert ended.code == 0, ended.out + ended.err


def test_a_failed_wait_prints_the_message_of_the_guide() -> None:
    with Broker(topics=["orders"]) as broker:
        with broker.producer() as producer:
            for value in (b"one", b"two"):
                producer.send("orders", value)
        with pytest.raises(WaitTimedOut) as failed:
            broker.wait_for_records("orders", 3, timeout_s=SHORT_S)

    assert shape(f"WaitTimedOut: {failed.value}").replace("0.0", "0") == shape(MESSAGE)
