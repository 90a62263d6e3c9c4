"""Parsing of settings, replica assignments and ids of `barnabas topics`."""

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.cli.tool import ToolFailed
from barnabas.cli.topic.values import is_given, parse_assignment, parse_settings, parse_topic_id


def test_the_last_setting_of_a_name_wins() -> None:
    assert parse_settings(["a=1", "b = 2 ", "a=3"]) == {"a": "3", "b": "2"}


@pytest.mark.parametrize("text", ["a", "a=", "a=b=c", ""])
def test_an_invalid_setting_is_rejected_as_in_kafka(text: str) -> None:
    with pytest.raises(ToolFailed, match='must be in the format "key=val"'):
        parse_settings([text])


def test_an_assignment_has_the_brokers_of_each_partition() -> None:
    assert parse_assignment("1:2, 2:3") == {0: [1, 2], 1: [2, 3]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1:1", "Partition replica lists may not contain duplicate entries: 1"),
        ("1:2,1", r"Partition 1 has different replication factor: \[1\]"),
        ("1:a", 'For input string: "a"'),
        ("1,,2", 'For input string: ""'),
    ],
)
def test_an_invalid_assignment_is_rejected(text: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=f"^{why}$"):
        parse_assignment(text)


def test_a_topic_id_is_parsed_and_zero_means_absent() -> None:
    assert is_given(parse_topic_id("8UFBlDBzRM2WGJual5ztlg"))
    assert parse_topic_id("A" * 22) == ZERO_UUID
    assert not is_given(ZERO_UUID)
    with pytest.raises(ToolFailed, match="uuid 'zzz'"):
        parse_topic_id("zzz")
