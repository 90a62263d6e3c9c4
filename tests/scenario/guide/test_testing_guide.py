"""The examples of the guide to testing, run as they stand there: each is a file of tests for pytest.

A block of code whose first line names a file is one. There is no second copy of them.
"""

import re
from pathlib import Path

import pytest

from support.kit import pytest_session
from support.spark_here import why_no_spark

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "testing.md"
EXAMPLES = dict(re.findall(r"^```python (\w+\.py)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))


def test_the_guide_has_an_example_for_each_library() -> None:
    names = {"first", "confluent", "aiokafka", "faststream", "pyspark", "outage"}

    assert set(EXAMPLES) == {f"test_{name}.py" for name in names}


def test_every_block_of_python_is_an_example() -> None:
    assert GUIDE.read_text().count("```python") == len(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_works_as_it_stands(name: str, tmp_path: Path) -> None:
    if name == "test_pyspark.py" and (reason := why_no_spark()) is not None:
        pytest.skip(reason)
    (tmp_path / name).write_text(EXAMPLES[name])
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    ended = pytest_session(tmp_path, name, warnings="default")

    assert ended.code == 0, ended.out + ended.err
    assert re.search(r"\b1 passed\b", ended.out)
