"""The rows of the table of APIs."""

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request, UnsupportedRequest
from barnabas.server.requests.api import Answer, Api, Context, Dispatcher

pytestmark = pytest.mark.kernel


def handle(ctx: Context, request: Request) -> Answer:
    return None


def refuse(body: object, version: int, code: ErrorCode) -> object:
    return None


def is_supported(row: Api, version: int) -> bool:
    try:
        return Dispatcher([row]).find(row.key, version, 0) is row
    except UnsupportedRequest:
        return False


@pytest.mark.parametrize("versions", [range(1), range(2, 11), range(5, 6), range(0)])
def test_a_row_supports_exactly_its_versions(versions: range) -> None:
    row = Api(ApiKey.FETCH, versions=versions, handle=handle, refuse=refuse)

    assert [version for version in range(-1, 13) if is_supported(row, version)] == list(versions)


def test_unstable_returns_a_row_with_the_unstable_versions() -> None:
    row = Api(
        ApiKey.FETCH,
        versions=range(5),
        handle=handle,
        refuse=refuse,
        advertised=range(4),
        with_unstable=range(6),
    )

    unstable = row.unstable()

    assert is_supported(unstable, 5)
    assert not is_supported(row, 5)
    assert (unstable.versions, unstable.advertised) == (range(6), range(4))
    assert unstable.unstable() is unstable
