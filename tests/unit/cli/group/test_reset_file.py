"""The CSV that --export writes and --from-file reads."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import CommandFailed
from barnabas.cli.group.reset_file import parse_plan, read_plan, written

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_an_export_of_one_group_can_be_imported_for_another(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(written({"a": {ORDERS_0: 5, ORDERS_1: 7}}, with_group=False) + "\n")

    assert file.read_text() == "orders,0,5\norders,1,7\n\n"
    assert read_plan(str(file), ["b"]) == {"b": {ORDERS_0: 5, ORDERS_1: 7}}


def test_an_export_of_several_groups_names_them() -> None:
    plan = {"a": {ORDERS_0: 5}, "b": {ORDERS_0: 6}}

    text = written(plan, with_group=True)

    assert text == "a,orders,0,5\nb,orders,0,6\n"
    assert parse_plan(text.splitlines(), ["a", "b"]) == plan
    assert parse_plan(text.splitlines(), ["a"]) == plan
    assert parse_plan(text.splitlines(), []) == plan


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("a-b_c.d", "a-b_c.d"),
        ("x" * 24, "x" * 24),
        ("x" * 25, f'"{"x" * 25}"'),
        ("a,b", '"a,b"'),
        ("a b", '"a b"'),
        ('a"b', '"a""b"'),
    ],
)
def test_cells_are_quoted_like_kafkas(name: str, cell: str) -> None:
    plan = {name: {ORDERS_0: 1}}

    text = written(plan, with_group=True)

    assert text == f"{cell},orders,0,1\n"
    assert parse_plan(text.splitlines(), []) == plan


@pytest.mark.parametrize(
    ("line", "groups", "why"),
    [
        ("orders,0,1", ["a", "b"], "line 1 of the file has 3 columns, expected 4: orders,0,1"),
        ("orders,0,1,2,3", ["a"], "line 1 of the file has 5 columns, expected 4: orders,0,1,2,3"),
        ("g,orders,x,1", [], "line 1 of the file: 'x' is not a whole number"),
        ("g,orders,0,99999999999999999999", [], "is not a whole number"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(line: str, groups: list[str], why: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        parse_plan([line], groups)

    assert why in str(caught.value)


def test_a_missing_file_is_reported_as_in_kafka() -> None:
    with pytest.raises(CommandFailed, match=r"^java\.io\.IOException: Unable to read file /nowhere$"):
        read_plan("/nowhere", ["a"])
