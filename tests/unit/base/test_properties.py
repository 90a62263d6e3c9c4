"""Properties files as Java reads and writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.errors import Malformed
from barnabas.base.properties import parse, render


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", {}),
        (b"a=1", {"a": "1"}),
        (
            b"a = 1\nb:2\nc 3\nd\t=\t4\r\ne\x0c5\rf",
            dict(zip("abcdef", ["1", "2", "3", "4", "5", ""], strict=True)),
        ),
        (b"# comment\n  ! another\n\n \t\na=#1", {"a": "#1"}),
        (b"a=1\\\n   2\\\r\n#3", {"a": "12#3"}),
        (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        (b"a=1\\", {"a": "1"}),
        (b"a\\=b\\:c\\ d=1=2:3", {"a=b:c d": "1=2:3"}),
        (b"a=\\t\\n\\r\\f\\q\\u00e9\\uD83D\\uDE00", {"a": "\t\n\r\fq\xe9\U0001f600"}),
        (b"a=trailing blanks  ", {"a": "trailing blanks  "}),
        (b"a==1", {"a": "=1"}),
        (b"=1", {"": "1"}),
        (b"a=1\na=2", {"a": "2"}),
        (b"a=\xe9", {"a": "\xe9"}),
        (b"\\\n#comment", {}),
    ],
)
def test_a_file_is_read_as_java_reads_it(content: bytes, found: dict[str, str]) -> None:
    assert parse(content) == found


@pytest.mark.parametrize(
    "content", [b"a=\\u12", b"\n\na=\\uxyzw", b"a\\u=1", b"a=\\ud83d", b"a=\\ude00\\ud83d"]
)
def test_a_broken_escape_is_refused_with_its_line(content: bytes) -> None:
    with pytest.raises(Malformed, match=f"line {content.count(10) + 1}"):
        parse(content)


def test_a_file_is_written_as_java_writes_it() -> None:
    entries = [("a b", " c d"), ("k=:#!", "v=:#!\\"), ("t", "\t\n\r\f"), ("u", "\xe9\x01\U0001f600")]

    content = render(entries, now_ms=1_794_709_942_000)

    assert content.decode().splitlines() == [
        "#",
        "#Sun Nov 15 02:32:22 UTC 2026",
        "a\\ b=\\ c d",
        "k\\=\\:\\#\\!=v\\=\\:\\#\\!\\\\",
        "t=\\t\\n\\r\\f",
        "u=\\u00E9\\u0001\\uD83D\\uDE00",
    ]


text = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(text, text))
def test_written_properties_are_read_back(entries: dict[str, str]) -> None:
    assert parse(render(entries.items(), now_ms=0)) == entries


@given(
    st.binary() | st.lists(st.sampled_from([b"\\", b"=", b" ", b"\n", b"u", b"00", b"a", b"#"])).map(b"".join)
)
def test_garbage_is_read_or_refused_with_the_one_error(content: bytes) -> None:
    try:
        found = parse(content)
    except Malformed:
        return
    assert parse(render(found.items(), now_ms=0)) == found
