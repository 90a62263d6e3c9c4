"""ApiVersions: the API table and the features."""

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.messages.cluster import ApiVersionsRequest, ApiVersionsResponse
from barnabas.server.handlers.api_versions import API
from barnabas.server.handlers.table import APIS
from support.decided import Decided, one_broker

SAFE_DOWNGRADE = 2


def asked(name: str = "wire-client", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", API.versions)
def test_the_api_keys_are_those_of_the_table_sorted(version: int) -> None:
    answer = one_broker().ask(API, asked(), version)

    assert answer.error_code == ErrorCode.NONE
    assert [row.api_key for row in answer.api_keys] == sorted(row.key for row in APIS)


def test_produce_is_advertised_from_version_0_and_fetch_unchanged() -> None:
    answer = one_broker().ask(API, asked(), 0)

    said = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert said[ApiKey.PRODUCE] == (0, 13)
    assert said[ApiKey.FETCH] == (4, 18)
    assert said[ApiKey.API_VERSIONS] == (0, 4)


@pytest.mark.parametrize(("enable", "last"), [("false", 5), ("true", 6)])
def test_an_unstable_version_is_advertised_if_enabled(enable: str, last: int) -> None:
    broker = one_broker({"unstable.api.versions.enable": enable})

    said = {row.api_key: row.max_version for row in broker.ask(API, asked(), 4).api_keys}

    assert said[ApiKey.INIT_PRODUCER_ID] == last


def test_features_with_minimum_level_0_are_included_from_version_4_on() -> None:
    broker = one_broker()

    before = {one.name: one.min_version for one in broker.ask(API, asked(), 3).supported_features}
    now = {one.name: one.min_version for one in broker.ask(API, asked(), 4).supported_features}

    assert before == {"metadata.version": 7}
    assert now == {
        "eligible.leader.replicas.version": 0,
        "group.version": 0,
        "kraft.version": 0,
        "metadata.version": 7,
        "share.version": 0,
        "streams.version": 0,
        "transaction.version": 0,
    }


def finalized(answer: ApiVersionsResponse) -> dict[str, int]:
    for one in answer.finalized_features:
        assert one.min_version_level == one.max_version_level
    return {one.name: one.max_version_level for one in answer.finalized_features}


@pytest.mark.parametrize("version", [3, 4])
def test_finalized_levels_come_with_their_metadata_offset(version: int) -> None:
    broker = one_broker()

    answer = broker.ask(API, asked(), version)

    assert finalized(answer) == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert answer.finalized_features_epoch == broker.image.offset


def test_a_disabled_feature_is_not_finalized() -> None:
    broker = one_broker()
    update = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE)

    broker.channel.decide(UpdateFeaturesRequest(feature_updates=[update]))

    assert "share.version" not in finalized(broker.ask(API, asked(), 4))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("", "1.0"),
        ("client", ""),
        ("a client", "1.0"),
        ("client-", "1.0"),
        (".client", "1.0"),
        ("client", "1.0+2"),
        ("käfka", "1"),
        ("client\n", "1"),
    ],
)
def test_an_invalid_client_software_name_is_refused(name: str, version: str) -> None:
    for spoken in (3, 4):
        answer = one_broker().ask(API, asked(name, version), spoken)

        assert answer == ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)


def test_dots_and_dashes_inside_a_software_name_are_allowed() -> None:
    assert one_broker().ask(API, asked("a.b-c", "1.0-SNAPSHOT.2"), 3).error_code == ErrorCode.NONE


def test_software_names_are_ignored_before_version_3() -> None:
    assert one_broker().ask(API, ApiVersionsRequest(), 2).error_code == ErrorCode.NONE


def test_a_broker_that_has_just_started_answers_too() -> None:
    broker = Decided()

    assert broker.ask(API, asked(), 4).api_keys
