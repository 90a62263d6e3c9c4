"""Comparison of a group's targets before and after an assignment."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.coordinators.group.assignors.homogeneous import changed_members, owned_by
from barnabas.coordinators.group.assignors.spec import Assignment

pytestmark = pytest.mark.kernel

ORDERS = Uuid(bytes(16))


def orders(*partitions: int) -> Assignment:
    return {ORDERS: frozenset(partitions)}


def test_members_come_in_their_order_and_who_has_no_target_has_nothing() -> None:
    owned = owned_by(["b", "a", "c"], {"a": orders(1), "b": orders(2), "gone": orders(3)})

    assert list(owned.items()) == [("b", orders(2)), ("a", orders(1)), ("c", {})]


def test_who_keeps_the_same_has_not_changed_whether_it_is_the_same_object_or_an_equal_one() -> None:
    kept = orders(1)

    assert changed_members({"a": kept, "b": orders(2)}, {"a": kept, "b": orders(2)}) == []


def test_who_gets_something_else_has_changed_and_who_never_had_a_target_too() -> None:
    before = {"a": orders(1), "b": orders(2)}

    assert changed_members({"a": orders(1, 3), "b": {}, "c": {}}, before) == ["a", "b", "c"]
