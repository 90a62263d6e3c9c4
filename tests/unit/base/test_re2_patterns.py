"""Regular expressions that match in linear time."""

import pytest

from barnabas.base.re2_patterns import (
    NAMES_AT_ONCE,
    PATTERN_BYTES_MAX,
    WORK_AT_ONCE,
    NotRe2,
    compile_re2,
    match_some,
)


def test_a_pattern_matches_as_one_of_re_does() -> None:
    pattern = compile_re2("(?i)orders-[a-z]+")

    assert pattern.fullmatch("ORDERS-eu")
    assert not pattern.fullmatch("my-orders-eu")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a[b", "missing ]: [b"),
        ("(?=a)", "invalid perl operator: (?="),
        ("(a)\\1", "invalid escape sequence: \\1"),
        ("\udcff", "invalid UTF-8"),
    ],
)
def test_an_invalid_pattern_has_the_message_of_re2_and_no_stderr(
    text: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotRe2) as caught:
        compile_re2(text)

    assert caught.value.reason == reason
    assert str(caught.value) == f"`{text}` is not a valid RE2 regular expression: {reason}"
    assert capfd.readouterr().err == ""


def test_an_expression_that_keeps_others_busy_for_hours_takes_no_time() -> None:
    assert not compile_re2("(a|aa)+$").fullmatch("a" * 100 + "b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" * (PATTERN_BYTES_MAX + 1), "pattern too large: 32768 bytes, the limit is 32767"),
        (r"\pL" * 1_000, "pattern too large: compile weight 803000, the limit is 65536"),
        ("a?" * 10_000, "pattern too large: compile weight 220000, the limit is 65536"),
        ("я" * 10_000, "pattern too large: compile weight 210000, the limit is 65536"),
        ("a{1,1000}b" * 21, "pattern too large: 42"),
        ("a{1,1000}b" * 50, "pattern too large"),
        (r"(\pL{30}\pN{30})+", "pattern too large"),
        ("((a{1,100}){1,100})", "invalid repetition size: {1,100}"),
    ],
)
def test_a_pattern_that_is_too_large_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotRe2) as caught:
        compile_re2(text)

    assert caught.value.reason.startswith(reason)
    # The message repeats only the beginning of the pattern.
    assert len(str(caught.value)) < 500


def test_a_list_of_as_many_names_as_a_request_holds_is_not_too_large() -> None:
    names = [f"orders-{number:05}-of-the-shop-{number * 7919 % 997:03}" for number in range(1_100)]
    text = "|".join(names)
    assert PATTERN_BYTES_MAX * 0.9 < len(text) <= PATTERN_BYTES_MAX

    pattern = compile_re2(text)

    at, found = match_some(pattern, ["orders-1", *names], 0)

    assert at > 1
    assert found == names[: at - 1]


def test_groups_make_a_pattern_no_larger() -> None:
    # With groups to find, one name took 0.1 s.
    pattern = compile_re2("(.*)" * 2_000)

    assert pattern.programsize < 100
    assert pattern.fullmatch("orders")


def test_many_names_are_matched_in_pieces() -> None:
    names = [f"orders-{number}" for number in range(1_200)]

    at, found = match_some(compile_re2("orders-.*"), names, 0)

    assert at == len(found) == NAMES_AT_ONCE
    assert match_some(compile_re2("orders-.*"), names, 1_100) == (1_200, names[1_100:])


def test_the_larger_a_pattern_the_fewer_names_are_matched_at_once() -> None:
    pattern = compile_re2("(.{0,100}){0,10}")
    names = ["x" * 240] * 100

    at, found = match_some(pattern, names, 0)

    assert at == len(found) == -(-WORK_AT_ONCE // (pattern.programsize * 241))
    assert at < 5
