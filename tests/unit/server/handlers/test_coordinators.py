"""FindCoordinator: there is none, and a client can read that in every version."""

from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import Request
from barnabas.protocol.messages.classic_groups import FindCoordinatorRequest
from barnabas.protocol.schema.codec import decode, encode
from barnabas.server.handlers.coordinators import API


def ask(version: int, **fields: Any) -> Any:
    request = Request(api(ApiKey.FIND_COORDINATOR), version, 1, "test", FindCoordinatorRequest(**fields))
    answer = API.handle(None, request)  # type: ignore[arg-type]
    return decode(type(answer), version, encode(answer, version))[0]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_one_group_has_no_coordinator(version: int) -> None:
    answer = ask(version, key="payments")

    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_several_groups_have_none_each(version: int) -> None:
    answer = ask(version, coordinator_keys=["a", "b"])

    assert [(one.key, one.error_code) for one in answer.coordinators] == [("a", 15), ("b", 15)]


@pytest.mark.parametrize(("version", "kind"), [(5, 2), (6, 3), (4, -1)])
def test_an_unknown_kind_is_refused(version: int, kind: int) -> None:
    answer = ask(version, key_type=kind, coordinator_keys=["a"])

    assert [one.error_code for one in answer.coordinators] == [ErrorCode.INVALID_REQUEST]
