"""Comparison of a group's targets before and after an assignment."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.homogeneous import changed_members, owned_by
from barnabas.coordinators.group.assignors.spec import Assignment

pytestmark = pytest.mark.kernel

ORDERS = Uuid(bytes(16))


def orders(*partitions: int) -> Assignment:
    return {ORDERS: frozenset(partitions)}


def test_members_are_ordered_and_empty_without_a_target() -> None:
    owned = owned_by(["b", "a", "c"], {"a": orders(1), "b": orders(2), "gone": orders(3)})

    assert list(owned.items()) == [("b", orders(2)), ("a", orders(1)), ("c", {})]


def test_an_equal_target_is_not_a_change() -> None:
    kept = orders(1)

    assert changed_members({"a": kept, "b": orders(2)}, {"a": kept, "b": orders(2)}) == []


def test_a_different_or_first_target_is_a_change() -> None:
    before = {"a": orders(1), "b": orders(2)}

    assert changed_members({"a": orders(1, 3), "b": {}, "c": {}}, before) == ["a", "b", "c"]
