"""What the data source says of the options that it was given."""

import subprocess
import sys

import pytest

from barnabas.spark.columns import schema
from barnabas.spark.data_source import BarnabasDataSource

GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "clicks"}


def test_a_batch_query_logs_ignored_options(caplog: pytest.LogCaptureFixture) -> None:
    source = BarnabasDataSource({**GIVEN, "maxOffsetsPerTrigger": "1000", "maxTriggerDelay": "1s"})

    source.reader(schema(headers=False))

    told = "options ignored in batch query options=maxOffsetsPerTrigger,maxTriggerDelay"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_nothing_is_logged_if_no_option_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    BarnabasDataSource(GIVEN).reader(schema(headers=False))
    BarnabasDataSource({**GIVEN, "maxOffsetsPerTrigger": "1000"}).streamReader(schema(headers=False))

    assert caplog.records == []


# In processes of their own: Spark starts several before a query begins, and its user waits for each.
FINDS = "import pyspark_barnabas\n"
READS = """
from barnabas.spark.columns import schema
pyspark_barnabas.DefaultSource({given}).{method}(schema(headers=False))
"""
TELLS = "import sys; print(*(name for name in sys.modules if name.startswith('barnabas.')))"


def imported(program: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", program + TELLS], capture_output=True, text=True, timeout=60, check=True
    )
    return set(ended.stdout.split())


def test_discovery_imports_neither_client_nor_readers_nor_writers() -> None:
    found = imported(FINDS)

    assert "barnabas.spark.data_source" in found
    assert not {"barnabas.client.blocking", "barnabas.spark.source", "barnabas.spark.sink"} & found


@pytest.mark.parametrize("method", ["reader", "streamReader"])
def test_reading_imports_no_writers(method: str) -> None:
    found = imported(FINDS + READS.format(given=GIVEN, method=method))

    assert "barnabas.spark.source" in found
    assert not {"barnabas.client.blocking.producer", "barnabas.spark.sink"} & found
