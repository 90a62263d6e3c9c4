"""Regular expressions that match in linear time."""

import pytest

from barnabas.base.re2_patterns import NotRe2, compile_re2


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
def test_what_re2_does_not_know_is_refused_in_its_words_and_not_written_to_stderr(
    text: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotRe2) as caught:
        compile_re2(text)

    assert caught.value.reason == reason
    assert str(caught.value) == f"`{text}` is not a regular expression of RE2: {reason}"
    assert capfd.readouterr().err == ""


def test_an_expression_that_keeps_others_busy_for_hours_takes_no_time() -> None:
    assert not compile_re2("(a|aa)+$").fullmatch("a" * 100 + "b")
