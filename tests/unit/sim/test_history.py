"""Histories: what the harness may write, and what checkers read."""

import json
from pathlib import Path

import pytest

from barnabas.sim.history import History, InvalidHistory, Row, check_history


class Time:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


def test_an_operation_has_the_facts_of_both_its_ends() -> None:
    history = History(Time())
    first = history.invoke("c1", "append", value="a")
    second = history.invoke("c2", "append", value="b")
    history.complete(second, "ok", offset=7)
    history.event("n1", "killed")
    history.complete(first, "info")

    assert [(one.client, one.outcome, one.facts) for one in history.operations("append")] == [
        ("c1", "info", {"value": "a"}),
        ("c2", "ok", {"value": "b", "offset": 7}),
    ]
    assert history.operations("read") == []
    check_history(history.rows)


def test_open_operations_end_as_unknown() -> None:
    history = History(Time())
    history.invoke("c1", "append", value="a")

    history.close()

    assert history.operations()[0].outcome == "info"
    check_history(history.rows)


def test_an_operation_ends_once() -> None:
    history = History(Time())
    number = history.invoke("c1", "append")
    history.complete(number, "ok")

    with pytest.raises(InvalidHistory, match="row 0 is not an open operation"):
        history.complete(number, "fail")


def row(number: int, kind: str, *, at: int | None = None, who: str = "c1", link: int | None = None) -> Row:
    return Row(number, number if at is None else at, kind, who, "append", link, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([row(1, "event")], "row 0 has number 1"),
        ([row(0, "event", at=5), row(1, "event", at=4)], "row 1 is earlier"),
        ([row(0, "ok", link=0)], "invokes nothing"),
        ([row(0, "invoke"), row(1, "ok", link=0), row(2, "info", link=0)], "completes row 0 again"),
        ([row(0, "invoke"), row(1, "ok", link=0, who="c2")], "another client's row 0"),
        ([row(0, "invoke")], "row 0 was never completed"),
    ],
)
def test_a_history_that_breaks_its_rules_is_the_harness_fault(rows: list[Row], wrong: str) -> None:
    with pytest.raises(InvalidHistory, match=wrong):
        check_history(rows)


def test_a_history_is_written_as_lines_of_json(tmp_path: Path) -> None:
    history = History(Time())
    history.complete(history.invoke("c1", "append", value="a"), "ok", offset=3)
    history.write(tmp_path / "history.jsonl")

    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]

    assert [line[2:5] for line in lines] == [["invoke", "c1", "append"], ["ok", "c1", "append"]]
