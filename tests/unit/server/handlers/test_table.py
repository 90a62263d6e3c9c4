"""The API table is complete, and its reference page is current."""

import inspect
from pathlib import Path

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.apis import api
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import response_parts
from barnabas.server.handlers.reference import NOT_YET, NOTES, page
from barnabas.server.handlers.table import APIS, WITH_UNSTABLE, spoken
from barnabas.server.requests.api import Api, NoAnswer

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "apis.md"


def test_every_key_is_supported_once_or_has_a_reason() -> None:
    spoken = [row.key for row in APIS]

    assert sorted([*spoken, *NOT_YET]) == sorted(ApiKey)
    assert set(NOTES) <= set(spoken)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), (
        "run python -m barnabas.server.handlers.reference > docs/reference/apis.md"
    )


@pytest.mark.parametrize("row", APIS, ids=lambda row: row.key.name)
def test_a_key_is_supported_in_all_versions_of_kafka(row: Api) -> None:
    theirs = api(row.key).versions

    assert (row.with_unstable or row.versions) == range(theirs.first, theirs.last + 1)
    # A row that advertises more must not advertise newer versions.
    assert row.advertised is None or row.advertised.stop == row.versions.stop


def test_unstable_versions_are_supported_only_if_enabled() -> None:
    usual, more = ({row.key: row.versions for row in spoken(unstable=unstable)} for unstable in (False, True))

    assert [(key.name, usual[key], more[key]) for key in usual if usual[key] != more[key]] == [
        ("INIT_PRODUCER_ID", range(6), range(7))
    ]


@pytest.mark.parametrize("row", WITH_UNSTABLE, ids=lambda row: row.key.name)
def test_a_refusal_can_be_written_in_every_version(row: Api) -> None:
    blank = api(row.key).request()

    for version in row.versions:
        answer = row.refuse(blank, version, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert not inspect.iscoroutine(answer)
        if not isinstance(answer, NoAnswer):
            response_parts(answer, version, key=row.key, correlation_id=1)


def test_a_key_is_advertised_only_on_kafkas_listener_for_it() -> None:
    assert [row.key.name for row in APIS if "broker" not in api(row.key).listeners] == []
