"""Builds events of streaming queries from Spark's JSON."""

import json
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

QUERY: Final = "5b1e5b6e-2ec6-4f5e-8d07-000000000001"
RUN: Final = "5b1e5b6e-2ec6-4f5e-8d07-0000000000aa"
_AT: Final = "2026-11-19T18:00:00.000Z"


def progress(
    end: dict[str, Any], latest: dict[str, Any] | None, *, query: str = QUERY, run: str = RUN, batch: int = 4
) -> StreamingQueryProgress:
    source = {
        "description": "barnabas",
        "startOffset": None,
        "endOffset": json.dumps(end),
        "latestOffset": None if latest is None else json.dumps(latest),
        "numInputRows": 10,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "metrics": {},
    }
    told = {
        "id": query,
        "runId": run,
        "name": "counts",
        "timestamp": _AT,
        "batchId": batch,
        "batchDuration": 100,
        "durationMs": {},
        "eventTime": {},
        "stateOperators": [],
        "sources": [source],
        "sink": {"description": "noop", "numOutputRows": 10, "metrics": {}},
        "numInputRows": 10,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "observedMetrics": {},
    }
    return StreamingQueryProgress.fromJson(told)


def progressed(end: dict[str, Any], latest: dict[str, Any] | None, **ids: Any) -> QueryProgressEvent:
    return QueryProgressEvent(progress(end, latest, **ids))


def idle(query: str = QUERY, run: str = RUN) -> QueryIdleEvent:
    return QueryIdleEvent.fromJson({"id": query, "runId": run, "timestamp": _AT})


def terminated(query: str = QUERY, run: str = RUN) -> QueryTerminatedEvent:
    told = {"id": query, "runId": run, "exception": None, "errorClassOnException": None}
    return QueryTerminatedEvent.fromJson(told)
