"""What the data source says of the options that it was given."""

import pytest

from barnabas.spark.columns import schema
from barnabas.spark.data_source import BarnabasDataSource

GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "clicks"}


def test_a_batch_query_tells_which_options_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    source = BarnabasDataSource({**GIVEN, "maxOffsetsPerTrigger": "1000", "maxTriggerDelay": "1s"})

    source.reader(schema(headers=False))

    told = "no effect in a batch query options=maxOffsetsPerTrigger,maxTriggerDelay"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_nothing_is_told_where_all_of_them_have_one(caplog: pytest.LogCaptureFixture) -> None:
    BarnabasDataSource(GIVEN).reader(schema(headers=False))
    BarnabasDataSource({**GIVEN, "maxOffsetsPerTrigger": "1000"}).streamReader(schema(headers=False))

    assert caplog.records == []
