"""The programs of the guide to the client, run as they stand there, one after the other with one broker."""

import re
import subprocess
import sys
from pathlib import Path

from barnabas.testing import Broker

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "client.md"
PROGRAMS = dict(re.findall(r"^```python (\w+\.py)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))
RUN_S_MAX = 60


def test_every_block_of_python_is_a_program() -> None:
    assert GUIDE.read_text().count("```python") == len(PROGRAMS)


def test_the_programs_of_the_guide_work_as_described() -> None:
    printed = {}
    with Broker() as broker:
        for name, program in PROGRAMS.items():
            command = [sys.executable, "-W", "error", "-c", program, broker.bootstrap]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
            assert ended.returncode == 0, f"{name}: {ended.stderr}"
            assert ended.stderr == "", name
            printed[name] = ended.stdout

    assert re.fullmatch(r"orders-[012] at 0\n", printed["produce.py"])
    assert printed["consume.py"] == "b'a book' {'lang': b'en'}\n10001 orders\n"
    size = len(b"a book") + sum(len(b"order %d" % number) for number in range(10_000))
    columns = "topic, partition, offset, timestamp, timestamp_type, key, value, headers"
    assert printed["columns.py"] == f"10001 orders, {size} bytes; columns {columns}\n"
    assert printed["groups.py"] == "{'billing': 10001, 'shipping': 10001}\n"
    assert printed["commits.py"] == "3 partitions are mine\n10001 committed\n3 partitions go\n"
    assert printed["streams.py"] == "10001 orders\n"
    aborted, *seen = printed["transactions.py"].splitlines()
    assert aborted == "aborted: bert has only 5"
    assert sorted(seen) == ["b'from anna: 5'", "b'to bert: 5'"]
    assert printed["handed_over.py"] == "2 transactions committed\n"
    assert printed["script.py"] == "['in', 'the', 'beginning']\n"
