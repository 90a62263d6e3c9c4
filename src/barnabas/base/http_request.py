"""Parse the head of an HTTP/1.x request (pure)."""

import re
from http import HTTPStatus
from typing import Final, NamedTuple

from barnabas.base.errors import BarnabasError

# RFC 9110 section 5.6.2: the characters of methods and header names.
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE: Final = re.compile(rf"({_TOKEN}) ([!-~]+) HTTP/([0-9])\.([0-9])")
_HEADER: Final = re.compile(rf"({_TOKEN}):[ \t]*([^\x00\r\n]*?)[ \t]*")
_ABSOLUTE: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class BadRequest(BarnabasError):
    """An invalid request, with the HTTP status of the response."""

    def __init__(self, status: HTTPStatus, what: str) -> None:
        super().__init__(what)
        self.status: Final = status
        self.what: Final = what


class HttpRequest(NamedTuple):
    """Header names are in lower case. Of a repeated header the last value counts."""

    method: str
    path: str
    minor_version: int
    headers: dict[str, str]


def parse_request(head: bytes) -> HttpRequest:
    """Parse the bytes up to and including the empty line. BadRequest if they are not a request."""
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = _REQUEST_LINE.fullmatch(lines[0])
    if found is None:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "invalid request line")
    method, target, major, minor = found.groups()
    if major != "1":
        raise BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.x is supported")
    headers = {}
    for line in lines[1:]:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise BadRequest(HTTPStatus.BAD_REQUEST, "invalid header line")
        headers[header[1].lower()] = header[2]
    if minor != "0" and "host" not in headers:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "missing Host header")
    return HttpRequest(method, _path(target), int(minor), headers)


def _path(target: str) -> str:
    """The path of a request target, without the query and without the host that a proxy puts before it."""
    return _ABSOLUTE.sub("", target, count=1).partition("?")[0] or "/"
