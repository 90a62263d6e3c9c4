"""Settings: declared once, read and shown as Kafka does."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.setting_rules import Value, at_least, between, list_of, one_of
from barnabas.base.settings import (
    InvalidSetting,
    SettingType,
    Synonym,
    format_value,
    parse_settings,
    parse_value,
    setting,
    settings_of,
)

HOURS = Synonym(name="some.hours", type=SettingType.INT, times=3_600_000)
MILLIS = Synonym(name="some.ms", type=SettingType.LONG, floor=-1)


@dataclass(frozen=True, kw_only=True)
class Example:
    wait_ms: int = setting(
        "wait.ms", SettingType.LONG, 5, "How long.", rule=at_least(-1), synonyms=(MILLIS, HOURS)
    )
    secret_word: str | None = setting(
        "secret.word", SettingType.PASSWORD, None, "Hush.", rule=one_of("sesame")
    )


DECLARED = settings_of(Example)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SettingType.BOOLEAN, " TRUE\n", True),
        (SettingType.BOOLEAN, "false", False),
        (SettingType.INT, " -2147483648 ", -(2**31)),
        (SettingType.INT, "+0007", 7),
        (SettingType.SHORT, "32767", 32767),
        (SettingType.LONG, "9223372036854775807", 2**63 - 1),
        (SettingType.DOUBLE, "0.5", 0.5),
        (SettingType.DOUBLE, "-1.5E3d", -1500.0),
        (SettingType.DOUBLE, ".5f", 0.5),
        (SettingType.LIST, "", ()),
        (SettingType.LIST, " a , b\t,c ", ("a", "b", "c")),
        (SettingType.LIST, "a,,", ("a", "", "")),
        (SettingType.STRING, " as it is ", "as it is"),
        (SettingType.CLASS, "org.example.Thing", "org.example.Thing"),
    ],
)
def test_a_text_is_read_as_its_type(kind: SettingType, text: str, value: Value) -> None:
    parsed = parse_value("x", kind, text)

    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SettingType.BOOLEAN, "yes"),
        (SettingType.BOOLEAN, ""),
        (SettingType.INT, "2147483648"),
        (SettingType.INT, "-2147483649"),
        (SettingType.INT, "1_000"),
        (SettingType.INT, "1.0"),
        (SettingType.INT, "\u0661"),
        (SettingType.INT, ""),
        (SettingType.SHORT, "32768"),
        (SettingType.LONG, "9223372036854775808"),
        (SettingType.LONG, "9" * 5000),
        (SettingType.DOUBLE, "NaN"),
        (SettingType.DOUBLE, "1e999"),
        (SettingType.DOUBLE, "."),
        (SettingType.DOUBLE, "1_0.5"),
    ],
)
def test_a_text_of_another_type_is_refused_with_name_and_value(kind: SettingType, text: str) -> None:
    with pytest.raises(InvalidSetting, match="must be") as raised:
        parse_value("the.name", kind, text)

    assert str(raised.value).startswith(f"the.name={text[:100]}")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (-5, "-5"),
        ((), ""),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.0009, "9.0E-4"),
        (-123456789.125, "-1.23456789125E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
    ],
)
def test_a_value_is_shown_as_java_shows_it(value: Value, text: str | None) -> None:
    assert format_value(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_that_is_shown_is_read_back(value: float) -> None:
    shown = format_value(value)

    assert shown is not None
    assert parse_value("x", SettingType.DOUBLE, shown) == value


@given(st.sampled_from(SettingType), st.text())
def test_any_text_is_read_or_refused_with_the_one_error(kind: SettingType, text: str) -> None:
    try:
        value = parse_value("x", kind, text)
    except InvalidSetting:
        return
    shown = format_value(value)
    assert shown is not None
    assert parse_value("x", kind, shown) == value


def test_missing_settings_are_not_parsed() -> None:
    assert parse_settings(DECLARED, {}, {}) == {}
    assert Example() == Example(wait_ms=5, secret_word=None)


def test_an_own_value_counts_more_than_a_synonym() -> None:
    above = {"some.ms": "7", "some.hours": "1", "unrelated": "x"}

    assert parse_settings(DECLARED, {"wait.ms": "6"}, above) == {"wait_ms": 6}
    assert parse_settings(DECLARED, {}, above) == {"wait_ms": 7}
    assert parse_settings(DECLARED, {}, {"some.hours": "2"}) == {"wait_ms": 7_200_000}


def test_all_values_below_the_floor_are_equal() -> None:
    assert parse_settings(DECLARED, {}, {"some.ms": "-99"}) == {"wait_ms": -1}


def test_a_bad_synonym_is_refused_under_its_own_name() -> None:
    with pytest.raises(InvalidSetting, match=r"some\.hours=soon: must be a 32-bit integer"):
        parse_settings(DECLARED, {}, {"some.hours": "soon"})
    with pytest.raises(InvalidSetting, match=r"some\.hours=-1: must be at least -1"):
        parse_settings(DECLARED, {}, {"some.hours": "-1"})


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidSetting, match=r"wait\.msec=5: no such setting; did you mean wait\.ms\?"):
        parse_settings(DECLARED, {"wait.msec": "5"}, {})


def test_a_password_is_not_shown_when_it_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"secret\.word=\(hidden\)") as raised:
        parse_settings(DECLARED, {"secret.word": "swordfish"}, {})

    assert "swordfish" not in f"{raised.value}{raised.value.value}"


def test_rules_describe_valid_values() -> None:
    assert between(1, 9).text == "between 1 and 9"
    assert [between(1, 9).allows(value) for value in (0, 1, 9, 10)] == [False, True, True, False]
    policies = list_of("compact", "delete")
    allowed = [(), ("delete",), ("compact", "delete")]
    refused = [("delete", "delete"), ("",), ("Delete",), ("delete", "keep")]
    assert [policies.allows(value) for value in allowed] == [True] * 3
    assert [policies.allows(value) for value in refused] == [False] * 4


def test_the_numbers_of_the_types_are_those_of_describe_configs() -> None:
    assert [(one.label, one.value) for one in SettingType] == [
        ("boolean", 1),
        ("string", 2),
        ("int", 3),
        ("short", 4),
        ("long", 5),
        ("double", 6),
        ("list", 7),
        ("class", 8),
        ("password", 9),
    ]
