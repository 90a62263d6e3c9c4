"""Whatever bytes a client sends to the metrics: a request comes of them, or one declared error."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.http_request import BadRequest, HttpRequest, parse_request

WORDS = b"GET|HEAD|/metrics|?x=1|http://h|HTTP/1.1|HTTP/1.0|HTTP/9.9|Host: h|Accept:"
MARKS = b" |\r\n|\n|\r|\0|\xff|:|\t|a"
PIECES = st.sampled_from([*WORDS.split(b"|"), *MARKS.split(b"|")])


@given(st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=12).map(b"".join)))
def test_bytes_are_a_request_or_a_bad_request(data: bytes) -> None:
    try:
        found = parse_request(data + b"\r\n\r\n")
    except BadRequest:
        return
    assert isinstance(found, HttpRequest)
    assert "\r" not in found.path
    assert all("\r" not in text and "\n" not in text for text in found.headers.values())


@given(
    st.sampled_from(["GET", "HEAD", "POST"]),
    st.text("abcxyz/-_.%", max_size=30),
    st.dictionaries(
        st.text("abcdefgh-", min_size=1), st.text(st.characters(min_codepoint=33, max_codepoint=126))
    ),
)
def test_a_valid_request_is_read_as_sent(method: str, path: str, headers: dict[str, str]) -> None:
    lines = [
        f"{method} /{path}?q HTTP/1.1",
        "Host: h",
        *(f"{name}:  {value} " for name, value in headers.items()),
    ]

    found = parse_request("\r\n".join([*lines, "", ""]).encode())

    assert found == HttpRequest(method, f"/{path}", 1, {"host": "h", **headers})
