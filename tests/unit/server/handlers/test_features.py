"""UpdateFeatures through a broker."""

from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.server.handlers.cluster import APIS
from support.decided import one_broker
from support.log.managers import on_a_loop

API = APIS[0]
SAFE_DOWNGRADE = 2


def updating(feature: str, level: int, *, timeout_ms: int = 1000, **more: object) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=feature, max_version_level=level, **more)  # type: ignore[arg-type]
    return UpdateFeaturesRequest(feature_updates=[update], timeout_ms=timeout_ms)


@on_a_loop
async def test_a_level_is_changed_and_reported_in_every_version() -> None:
    broker = one_broker()

    down = await broker.ask_and_wait(API, updating("share.version", 0, upgrade_type=SAFE_DOWNGRADE), 1)
    assert (down.error_code, [one.feature for one in down.results]) == (0, ["share.version"])
    assert "share.version" not in broker.image.features

    # The timeout is not looked at.
    up = await broker.ask_and_wait(API, updating("share.version", 1, timeout_ms=0), 2)
    assert (up.error_code, up.results) == (0, [])
    assert broker.image.features["share.version"] == 1


@on_a_loop
async def test_an_invalid_level_fails_the_whole_request() -> None:
    broker = one_broker()

    for version in API.versions:
        answer = await broker.ask_and_wait(API, updating("group.version", 9), version)

        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "group.version" in answer.error_message
        assert answer.results == []


@on_a_loop
async def test_allow_downgrade_of_version_0_has_no_effect() -> None:
    broker = one_broker()

    answer = await broker.ask_and_wait(API, updating("share.version", 0, allow_downgrade=True), 0)

    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert broker.image.features["share.version"] == 1
