"""Runs the Python blocks of the Spark guide in order as one program."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.client.blocking import Admin, Consumer, Producer
from support.docs.pages import DOCS, blocks
from support.process.our_broker import OurBroker

GUIDE = DOCS / "guides" / "spark.md"
# Blocks with a file name are separate programs: see test_ways_to_run.py.
PROGRAM = [block for block in blocks(GUIDE) if block.language == "python" and not block.file]
WAIT_MS_MAX = 60_000


@contextmanager
def pipeline() -> Iterator[list[Any]]:
    """A declarative pipeline that records the declared outputs without running them."""
    from pyspark.pipelines.graph_element_registry import (
        GraphElementRegistry,
        graph_element_registration_context,
    )

    declared: list[Any] = []

    class Noted(GraphElementRegistry):
        def register_output(self, output: Any) -> None:
            declared.append(output)

        def register_flow(self, flow: Any) -> None: ...

        def register_auto_cdc_flow(self, flow: Any) -> None: ...

        def register_sql(self, sql_text: str, file_path: Path) -> None: ...

    with graph_element_registration_context(Noted()):
        yield declared


def test_the_guide_runs_from_top_to_bottom(spark: SparkSession, tmp_path: Path) -> None:
    broker = OurBroker(tmp_path / "broker")
    names: dict[str, Any] = {"spark": spark}
    with broker.running() as address, pipeline() as declared:
        with Admin(bootstrap_servers=address) as admin:
            for topic in ("clicks", "shouted"):
                admin.create_topic(topic)
        with Producer(bootstrap_servers=address) as producer:
            producer.send("clicks", b"home", key=b"anna")
        try:
            for block in PROGRAM:
                text = block.text.replace("localhost:9092", address).replace('"/data/', f'"{tmp_path}/')
                text = text.replace("port=9464", "port=0")
                if "dp." in text:
                    names["dp"] = __import__("pyspark.pipelines", fromlist=["pipelines"])
                exec(compile(text, str(block), "exec"), names)
            with Consumer(
                bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed"
            ) as consumer:
                consumer.assign_topic("shouted")
                [record] = consumer.batch(1, timeout_ms=WAIT_MS_MAX)
        finally:
            for query in spark.streams.active:
                query.stop()

    assert (record.key, record.value) == (b"anna", b"HOME")
    assert [(one.name, one.format) for one in declared] == [("out", "barnabas")]


@pytest.fixture(autouse=True)
def no_listener_is_left(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    added: list[Any] = []
    add = spark.streams.addListener
    monkeypatch.setattr(
        type(spark.streams), "addListener", lambda _, listener: (added.append(listener), add(listener))
    )
    yield
    for listener in added:
        spark.streams.removeListener(listener)
        listener.close()
