"""A value is what a frozen dataclass with slots is; where it can be, each is asked the same."""

import copy
import inspect
import math
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, InitVar, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import pytest

from barnabas.base.values import value


@value
class Point:
    """A place."""

    x: int
    y: int = 0

    def doubled(self) -> "Point":
        return Point(2 * self.x, y=2 * self.y)

    @property
    def is_origin(self) -> bool:
        return self == Point(0)


@value(kw_only=True)
class Named:
    name: str
    tags: Mapping[str, int] = field(default_factory=dict)
    note: str | None = None


@value
class Nothing:
    pass


@value
class One:
    content: object


@dataclass(frozen=True, slots=True)
class PlainPoint:
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainNamed:
    name: str
    tags: Mapping[str, int] = field(default_factory=dict)
    note: str | None = None


PAIRS = [pytest.param(Point, PlainPoint, id="positional"), pytest.param(Named, PlainNamed, id="keyword")]


def declared_anew() -> Any:
    @value
    class Fresh:
        x: int
        y: int = 7

    return Fresh


def declared_by_name_anew() -> Any:
    @value(kw_only=True)
    class Fresh:
        x: int
        y: int = 7

    return Fresh


def test_fields_are_taken_by_position_or_name_and_defaults_fill_in() -> None:
    assert (Point(1, 2).x, Point(1, 2).y) == (1, 2)
    assert (Point(x=1, y=2).x, Point(1).y) == (1, 0)
    assert Point(1, 2).doubled() == Point(2, 4)
    assert Point(0).is_origin


def test_a_default_factory_makes_a_default_for_each_instance() -> None:
    first, second = Named(name="a"), Named(name="a")
    assert first.tags == second.tags == {}
    assert first.tags is not second.tags
    assert Named(name="a", tags={"b": 1}).tags == {"b": 1}


@pytest.mark.parametrize(("ours", "plain"), PAIRS)
@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), ((1, 2, 3, 4), {}), ((1,), {"x": 1}), ((), {"z": 1}), ((), {"name": "a", "z": 1})],
)
def test_a_call_that_does_not_fit_is_refused_in_pythons_words(
    ours: Any, plain: Any, given: tuple[int, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError) as expected:
        plain(*given, **named)
    with pytest.raises(TypeError) as found:
        ours(*given, **named)
    assert str(found.value) == str(expected.value).replace(plain.__name__, ours.__name__)


@pytest.mark.parametrize(("ours", "plain"), PAIRS)
def test_the_signature_is_a_dataclasss(ours: Any, plain: Any) -> None:
    found, expected = inspect.signature(ours), inspect.signature(plain)
    assert list(found.parameters) == list(expected.parameters)
    for name, one in found.parameters.items():
        other = expected.parameters[name]
        assert (one.kind, one.annotation) == (other.kind, other.annotation)
        assert (one.default is one.empty) == (other.default is other.empty)


def test_the_signature_is_known_before_the_first_instance() -> None:
    assert str(inspect.signature(declared_anew())) == "(x: int, y: int = 7) -> None"
    assert str(inspect.signature(declared_by_name_anew())) == "(*, x: int, y: int = 7) -> None"


def test_a_call_that_fails_first_does_not_spoil_the_class() -> None:
    fresh = declared_anew()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        fresh()
    assert (fresh(1).x, fresh(1).y) == (1, 7)


def test_two_are_equal_if_class_and_fields_are() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Nothing() == Nothing()
    assert One(1) == One(1)
    assert One(1) != One(2)
    others: list[object] = [PlainPoint(1, 2), (1, 2), One((1, 2)), Nothing(), None]
    assert Point(1, 2) not in others


def test_identical_values_are_equal_as_in_a_dataclass() -> None:
    assert One(math.nan) == One(math.nan)
    assert Point(math.nan) == Point(math.nan)  # type: ignore[arg-type]


def test_equal_values_are_one_key() -> None:
    assert len({Point(1, 2), Point(1, 2), Point(2, 1), Nothing(), Nothing(), One(1), One(1)}) == 4
    with pytest.raises(TypeError, match="unhashable"):
        hash(One([]))


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (Point(1), "Point(x=1, y=0)"),
        (Named(name="a"), "Named(name='a', tags={}, note=None)"),
        (Nothing(), "Nothing()"),
        (One(Point(2)), "One(content=Point(x=2, y=0))"),
    ],
)
def test_it_shows_its_fields(one: object, shown: str) -> None:
    assert repr(one) == shown


def test_a_recursive_value_has_a_repr() -> None:
    inside: list[object] = []
    inside.append(One(inside))
    assert repr(inside[0]) == "One(content=[...])"


@pytest.mark.parametrize("name", ["x", "y", "z"])
def test_nothing_can_be_assigned_or_deleted(name: str) -> None:
    point = Point(1, 2)
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(point, name, 3)
    with pytest.raises(FrozenInstanceError, match=name):
        delattr(point, name)
    assert point == Point(1, 2)
    assert not hasattr(point, "__dict__")


@pytest.mark.parametrize("one", [Point(1, 2), Named(name="a", tags={"b": 1}), Nothing(), One((1,)), One(())])
def test_it_can_be_pickled_and_copied(one: object) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one, protocol)) == one
    assert copy.copy(one) == one
    assert copy.deepcopy(one) == one


def test_a_deep_copy_shares_nothing() -> None:
    one = Named(name="a", tags={"b": 1})
    assert copy.copy(one).tags is one.tags
    assert copy.deepcopy(one).tags is not one.tags


def test_it_matches_by_position_unless_it_is_made_by_name() -> None:
    assert Point.__match_args__ == ("x", "y")
    assert Named.__match_args__ == ()
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_it_is_checked_after_it_is_made_but_not_when_it_is_copied() -> None:
    asked = []

    @value
    class Checked:
        least: int
        most: int

        def __post_init__(self) -> None:
            asked.append((self.least, self.most))
            if self.least > self.most:
                raise ValueError(f"{self.least} > {self.most}")

    copy.copy(Checked(1, 2))
    assert asked == [(1, 2)]
    with pytest.raises(ValueError, match="3 > 2"):
        Checked(3, 2)
    with pytest.raises(ValueError, match="3 > 2"):
        replace(Checked(1, 2), least=3)


def test_a_method_of_the_class_is_not_replaced() -> None:
    @value
    class Quiet:
        name: str

        def __repr__(self) -> str:
            return "quiet"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Quiet)

        def __hash__(self) -> int:
            return 5

    assert repr(Quiet("a")) == "quiet"
    assert Quiet("a") == Quiet("b")
    assert hash(Quiet("a")) == 5


def test_the_class_keeps_its_names() -> None:
    assert (Point.__name__, Point.__qualname__, Point.__module__) == ("Point", "Point", __name__)
    assert Point.__doc__ == "A place."
    assert declared_anew().__qualname__ == "declared_anew.<locals>.Fresh"


@pytest.mark.parametrize(("ours", "plain"), PAIRS)
def test_dataclasses_functions_accept_a_value_class(ours: Any, plain: Any) -> None:
    assert is_dataclass(ours)
    for found, expected in zip(fields(ours), fields(plain), strict=True):
        for what in ("name", "type", "default", "default_factory", "init", "compare", "kw_only"):
            assert getattr(found, what) == getattr(expected, what)


def test_one_with_other_fields_can_be_made_of_it() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert replace(Named(name="a", note="b"), name="c") == Named(name="c", note="b")
    assert asdict(One(Point(1, 2))) == {"content": {"x": 1, "y": 2}}
    unknown = {"z": 3}
    with pytest.raises(TypeError, match="'z'"):
        replace(Point(1, 2), **unknown)


def test_a_value_has_no_bases_and_no_subclasses() -> None:
    class Base:
        pass

    with pytest.raises(AssertionError, match="no bases"):

        @value
        class Derived(Base):
            x: int

    with pytest.raises(TypeError, match="no subclasses"):

        class Longer(Point):
            pass


@pytest.mark.parametrize(
    ("annotation", "default", "why"),
    [
        (ClassVar[int], 1, "only fields"),
        (ClassVar, 1, "only fields"),
        (InitVar[int], 1, "only fields"),
        (InitVar, 1, "only fields"),
        (list[int], [], "share its default"),
        (dict[str, int], {}, "share its default"),
        (int, field(default=1), "may only set default_factory"),
        (list[int], field(default_factory=list, repr=False), "may only set default_factory"),
        (list[int], field(default_factory=list, compare=False), "may only set default_factory"),
        (list[int], field(default_factory=list, hash=False), "may only set default_factory"),
        (list[int], field(default_factory=list, init=False), "may only set default_factory"),
        (list[int], field(default_factory=list, kw_only=True), "may only set default_factory"),
        (list[int], field(default_factory=list, metadata={"a": 1}), "may only set default_factory"),
    ],
)
def test_unsupported_declarations_are_rejected(annotation: Any, default: object, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        value(type("Refused", (), {"__annotations__": {"x": annotation}, "x": default}))


def test_fields_without_a_default_come_first_unless_keyword_only() -> None:
    body = {"__annotations__": {"x": int, "y": int}, "x": 1}
    with pytest.raises(AssertionError, match="comes after one that has it"):
        value(type("Disordered", (), dict(body)))
    made: Any = value(kw_only=True)(type("Named", (), dict(body)))
    assert (made(y=2).x, made(y=2).y) == (1, 2)


def test_declaring_one_compiles_nothing() -> None:
    """This is what it is for: a module that declares twenty is imported in the time of one dataclass."""
    program = """
import sys
from dataclasses import replace
from barnabas.base.values import value
compiled = []
sys.addaudithook(lambda event, _: compiled.append(event) if event in ("compile", "exec") else None)
@value(kw_only=True)
class Declared:
    x: int
    y: int = 0
assert not compiled, compiled
Declared(x=1)
assert compiled == ["compile", "exec"], compiled
replace(Declared(x=1), x=2)
# From 3.13 on dataclasses compiles a class without methods, too.
assert sys.version_info >= (3, 13) or compiled == ["compile", "exec"], compiled
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
