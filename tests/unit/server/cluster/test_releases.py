"""Releases and feature levels, as observed with Kafka 4.3.0's storage tool."""

import pytest

from barnabas.controller.bootstrap import bootstrap_records
from barnabas.server.cluster.releases import (
    RELEASES,
    BadFeature,
    check_served,
    chosen_levels,
    default_levels,
    level_records,
    needs_of,
    release_level,
    release_name,
)

ELR = "eligible.leader.replicas.version"


@pytest.mark.parametrize(
    ("release", "level"),
    [
        *[("3.3", 7), ("3.4", 8), ("3.5", 11), ("3.6", 14), ("3.7", 19), ("3.8", 20), ("3.9", 21)],
        *[
            ("4.0", 25),
            ("4.1", 27),
            ("4.2", 29),
            ("4.3", 30),
            ("4.0.1", 25),
            ("4.0-IV1", 23),
            ("4.3-IV0", 30),
        ],
    ],
)
def test_a_release_has_the_level_that_kafka_gives_it(release: str, level: int) -> None:
    assert release_level(release) == level


@pytest.mark.parametrize("release", ["3.2", "4.4", "9.9", "", "4", "IV0", "4.3-IV1"])
def test_an_unknown_release_is_refused_with_a_list_of_releases(release: str) -> None:
    with pytest.raises(BadFeature, match=rf"Unknown metadata.version '{release}'.*3\.3-IV3, .*, 4\.3-IV0$"):
        release_level(release)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (7, [0, 0, 0, 0, 0, 0]),
        (21, [1, 0, 0, 0, 0, 0]),
        (22, [1, 0, 1, 0, 0, 0]),
        (24, [1, 2, 1, 0, 0, 0]),
        (25, [1, 2, 1, 0, 0, 0]),
        (26, [1, 2, 1, 1, 0, 0]),
        (28, [1, 2, 1, 1, 1, 0]),
        (30, [1, 2, 1, 1, 1, 1]),
    ],
)
def test_new_clusters_get_the_levels_of_their_release(level: int, expected: list[int]) -> None:
    assert list(default_levels(level).values()) == expected


def test_every_level_has_a_name_and_back() -> None:
    assert [release_level(name) for name in RELEASES] == list(range(7, 31))
    assert release_name(30) == "4.3-IV0"


def test_default_levels_equal_the_controllers_bootstrap_records() -> None:
    assert level_records(chosen_levels(None, {})) == bootstrap_records()


def test_requested_levels_override_those_of_the_release() -> None:
    levels = chosen_levels("4.0", {"group.version": 0, "transaction.version": 1})

    assert [(one.name, one.feature_level) for one in level_records(levels)] == [
        ("metadata.version", 25),
        ("transaction.version", 1),
    ]
    assert chosen_levels(None, {"metadata.version": 25}) == chosen_levels("4.0", {})


@pytest.mark.parametrize(
    ("release", "asked", "message"),
    [
        ("4.1", {"metadata.version": 25}, "Use --release-version instead of --feature metadata.version=X"),
        (None, {"metadata.version": 99}, "No MetadataVersion with feature level 99"),
        (None, {"foo": 1}, f"Unsupported feature: foo. Supported features are: {ELR}, group.version, kraft"),
        (None, {"group.version": 9}, "No feature:group.version with feature level 9"),
        (None, {"group.version": -1}, "No feature:group.version with feature level -1"),
        ("3.9", {ELR: 1}, f"{ELR} could not be set to 1 because it depends on metadata.version level 23"),
        (None, {"kraft.version": 1}, "dynamic voters"),
        ("3.6", {}, r"14 \(3\.6-IV2\) is older than the oldest supported version, 19 \(3\.7-IV4\)"),
    ],
)
def test_invalid_levels_are_refused(release: str | None, asked: dict[str, int], message: str) -> None:
    with pytest.raises(BadFeature, match=message):
        chosen_levels(release, asked)


def test_a_cluster_of_an_older_level_is_not_served() -> None:
    check_served(19)
    with pytest.raises(BadFeature, match="older than the oldest supported version, 19"):
        check_served(18)


def test_the_requirements_of_a_level() -> None:
    assert needs_of(ELR, 1) == 23
    assert needs_of(ELR, 0) is None
    assert needs_of("metadata.version", 30) is None
    for name, level in (("x", 1), ("metadata.version", 1), ("transaction.version", 3), ("group.version", -1)):
        with pytest.raises(BadFeature):
            needs_of(name, level)
