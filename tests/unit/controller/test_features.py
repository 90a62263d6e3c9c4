"""Feature levels, and the first records of a cluster."""

import pytest

from barnabas.controller.bootstrap import activation_records, bootstrap_records
from barnabas.metadata.image import ALL_BROKERS
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import Feature, FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.protocol.stored.cluster_nodes import AbortTransactionRecord, FeatureLevelRecord
from barnabas.protocol.stored.cluster_topics import ConfigRecord
from support.controllers import ActiveController, settings
from support.metadata_images import replay, sample_batches

NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
    "downgrade."
)
PREFIX = "The update failed for all features since the following feature had an error: "


def update(
    world: ActiveController, *updates: tuple[str, int, int], validate_only: bool = False
) -> tuple[int, str | None]:
    response = world.ask(
        UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                for name, level, kind in updates
            ],
            validate_only=validate_only,
        )
    )
    return response.error_code, response.error_message


def test_a_new_cluster_has_the_records_that_kafka_writes() -> None:
    first = next(batch for batch in sample_batches() if batch.records)

    found = activation_records(replay([]), bootstrap_records(), settings(), in_transaction=False)

    assert tuple(found) == tuple(record for record, _ in first.records)


def test_bootstrap_checkpoint_has_the_records_that_kafka_writes() -> None:
    theirs = [record for batch in sample_batches("bootstrap.checkpoint") for record, _ in batch.records]

    assert bootstrap_records() == theirs


def test_the_files_minimum_becomes_the_clusters() -> None:
    world = ActiveController(static_config={"min.insync.replicas": "2"})

    assert world.image.config(ALL_BROKERS) == {"min.insync.replicas": "2"}


def test_a_transaction_that_was_left_open_is_aborted() -> None:
    image = replay(bootstrap_records())

    found = activation_records(image, bootstrap_records(), settings(), in_transaction=True)

    assert found == [AbortTransactionRecord(reason="Controller failover")]
    assert activation_records(image, bootstrap_records(), settings(), in_transaction=False) == []


def test_an_interrupted_bootstrap_is_repeated() -> None:
    found = activation_records(replay([]), bootstrap_records(), settings(), in_transaction=True)

    assert isinstance(found[0], AbortTransactionRecord)
    assert found[1:] == activation_records(replay([]), bootstrap_records(), settings(), in_transaction=False)


def test_a_feature_is_switched_off_and_on() -> None:
    world = ActiveController().with_brokers(1)

    assert update(world, ("group.version", 0, 2)) == (0, None)
    assert "group.version" not in world.image.features
    assert update(world, ("group.version", 1, 1)) == (0, None)
    assert world.image.features["group.version"] == 1
    assert world.image == world.replayed()


def test_the_answer_of_old_versions_names_every_feature() -> None:
    world = ActiveController().with_brokers(1)
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)]
    )

    response = world.ask(request)

    assert [(one.feature, one.error_code, one.error_message) for one in response.results] == [
        ("group.version", 0, "NONE")
    ]


@pytest.mark.parametrize(
    ("name", "level", "kind", "message"),
    [
        ("group.version", 0, 1, NO_DOWNGRADE),
        ("group.version", 2, 1, "Local controller 1 only supports versions 0-1"),
        ("no.such", 1, 1, "Local controller 1 does not support this feature."),
        ("kraft.version", 1, 1, "Local controller 1 does not support this feature."),
        ("group.version", -1, 2, "A feature version cannot be less than 0."),
        ("group.version", 0, 7, "The controller does not support the given upgrade type."),
        ("metadata.version", 31, 1, "Local controller 1 only supports versions 7-30"),
    ],
)  # fmt: skip
def test_levels_that_are_refused(name: str, level: int, kind: int, message: str) -> None:
    world = ActiveController().with_brokers(1)

    assert update(world, (name, level, kind)) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        f"{PREFIX}Invalid update version {level} for feature {name}. {message}",
    )


def test_the_metadata_version_does_not_go_back() -> None:
    world = ActiveController().with_brokers(1)

    for kind, why in (
        (2, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (3, "Unsafe metadata downgrade is not supported in this version."),
    ):
        code, message = update(world, ("metadata.version", 25, kind))
        assert code == ErrorCode.INVALID_UPDATE_VERSION
        assert message == f"{PREFIX}Unsupported metadata.version downgrade from 30 to 25. {why}"


def test_every_broker_must_support_a_level() -> None:
    world = ActiveController().with_brokers(1)
    update(world, ("share.version", 0, 2))
    features = [
        Feature(name=name, min_supported_version=0, max_supported_version=level)
        for name, level in world.image.features.items()
    ]
    world.register(2, features=features)

    _, message = update(world, ("share.version", 1, 1))

    assert message is not None
    assert message.endswith("Broker 2 does not support this feature.")


def test_every_voter_must_have_registered() -> None:
    world = ActiveController(voters=(1, 2)).with_brokers(1)

    _, message = update(world, ("group.version", 0, 2))

    assert message is not None
    assert message.endswith("controller 2 has not registered, and may not support this feature")


def test_all_updates_are_made_or_none() -> None:
    world = ActiveController().with_brokers(1)

    code, _ = update(world, ("group.version", 0, 2), ("share.version", 9, 1))

    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert world.image.features["group.version"] == 1


def test_validate_only_writes_nothing() -> None:
    world = ActiveController().with_brokers(1)

    assert update(world, ("group.version", 0, 2), validate_only=True) == (0, None)
    assert world.image.features["group.version"] == 1


def test_eligible_leaders_need_one_minimum_for_the_cluster() -> None:
    world = ActiveController(bootstrap=[FeatureLevelRecord(name="metadata.version", feature_level=30)])
    world.with_brokers(1)
    world.write_record(
        ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="2")
    )

    assert update(world, ("eligible.leader.replicas.version", 1, 1)) == (0, None)

    assert world.image.config(ALL_BROKERS) == {"min.insync.replicas": "1"}
    assert world.image.config((4, "1")) == {}  # type: ignore[arg-type]


def test_features_wait_for_the_latest_metadata_version() -> None:
    world = ActiveController(bootstrap=[FeatureLevelRecord(name="metadata.version", feature_level=25)])

    code, message = update(world, ("group.version", 1, 1))
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert message is not None
    assert message.endswith("metadata.version has to be 30 first.")

    assert update(world, ("metadata.version", 30, 1)) == (0, None)
    assert update(world, ("group.version", 1, 1)) == (0, None)
