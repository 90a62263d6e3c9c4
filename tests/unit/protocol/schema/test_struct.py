"""Declarations become classes with slots, a constructor, equality and a short repr."""

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.schema.fields import (
    Records,
    array,
    boolean,
    int16,
    int32,
    nested,
    records,
    string,
    uuid,
)
from barnabas.protocol.schema.struct import message, request, response, schema_of, struct


@struct
class Point:
    x: int = int32()
    y: int = int32("1+", default=-1)


@message("data", versions="0-2", flexible="2+", key=7)
class Shape:
    """A declaration of our own, so that a change to a real message cannot break these tests."""

    name: str = string()
    note: str | None = string(null="0+", default=None)
    closed: bool = boolean(default=True)
    id: Uuid = uuid()
    start: Point = nested(Point)
    points: list[Point] = array(Point)
    sizes: list[int] | None = array(int16, null="1+", default=None)
    end: Point | None = nested(Point, "2+", null="2+")

    def count(self) -> int:
        return len(self.points)


def test_a_new_message_has_the_declared_defaults() -> None:
    shape = Shape()

    assert (shape.name, shape.note, shape.closed, shape.id) == ("", None, True, ZERO_UUID)
    assert (shape.start, shape.points, shape.sizes, shape.end) == (Point(), [], None, None)
    assert shape.start.y == -1
    assert shape.unknown_tags == ()  # type: ignore[attr-defined]


def test_two_new_messages_share_no_mutable_default() -> None:
    one, other = Shape(), Shape()

    one.points.append(Point())
    one.start.x = 5

    assert other.points == []
    assert other.start.x == 0


def test_fields_are_given_by_name_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        Shape("name")  # type: ignore[call-arg]


def test_an_undeclared_field_is_rejected_at_every_call() -> None:
    @struct
    class Fresh:
        x: int = int32()

    for _ in range(2):
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            Fresh(z=1)  # type: ignore[call-arg]


def test_an_attribute_that_is_not_declared_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Point().z = 1  # type: ignore[attr-defined]


def test_messages_are_equal_when_all_fields_and_unknown_tags_are() -> None:
    assert Point(x=1) == Point(x=1)
    assert Point(x=1) != Point(x=2)
    assert Point(unknown_tags=((1, b""),)) != Point()  # type: ignore[call-arg]
    assert Point() != (0, -1)  # type: ignore[comparison-overlap]


def test_structs_of_another_class_are_never_equal() -> None:
    @struct
    class Twin:
        x: int = int32()
        y: int = int32(default=-1)

    assert Twin() != Point()  # type: ignore[comparison-overlap]


def test_messages_are_mutable_and_therefore_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point())


def test_repr_shows_fields_without_default_values() -> None:
    assert repr(Shape()) == "Shape()"
    assert repr(Shape(name="a", points=[Point(x=1)])) == "Shape(name='a', points=[Point(x=1)])"


def test_repr_shows_unknown_tags() -> None:
    assert repr(Point(unknown_tags=((3, b"x"),))) == "Point(unknown_tags=((3, b'x'),))"  # type: ignore[call-arg]


def test_methods_and_the_docstring_of_a_declaration_stay() -> None:
    assert Shape(points=[Point(), Point()]).count() == 2
    assert (Shape.__doc__ or "").startswith("A declaration")


def test_the_schema_has_the_declared_fields() -> None:
    schema = schema_of(Shape)

    assert (schema.name, schema.kind, schema.key) == ("Shape", "data", 7)
    assert (str(schema.versions), str(schema.flexible)) == ("0-2", "2+")
    assert [field.name for field in schema.fields][:3] == ["name", "note", "closed"]


def test_requests_and_responses_know_their_key_and_listeners() -> None:
    @request(99, versions="0-1", flexible="1+", listeners="broker controller")
    class AskRequest:
        x: int = int32()

    @response(99, versions="0-1", flexible="1+")
    class AskResponse:
        x: int = int32()

    asked, answered = schema_of(AskRequest), schema_of(AskResponse)
    assert (asked.kind, asked.key, asked.listeners) == ("request", 99, ("broker", "controller"))
    assert (answered.kind, answered.key, answered.listeners) == ("response", 99, ())


def test_records_that_may_be_null_are_null_by_default() -> None:
    @struct
    class Batches:
        some: Records = records()
        maybe: Records | None = records(null="0+")

    assert Batches().some == b""
    assert Batches().maybe is None
