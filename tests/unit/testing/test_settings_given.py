"""Settings of a broker inside a test."""

import pytest

from barnabas.base.settings import InvalidSetting
from barnabas.testing.settings import broker_properties, given_settings


def test_kafkas_names_and_keywords_with_underscores_mean_the_same() -> None:
    by_name = given_settings({"num.partitions": 3, "log.retention.ms": -1}, {})

    assert given_settings({"log.retention.ms": -1}, {"num_partitions": 3}) == by_name


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (3, "3"), ("x", "x"), (["compact", "delete"], "compact,delete")],
)
def test_a_value_is_written_as_in_a_properties_file(value: object, text: str) -> None:
    assert given_settings({"some.name": value}, {}) == {"some.name": text}


def test_a_computed_setting_is_rejected_with_the_alternative() -> None:
    with pytest.raises(InvalidSetting, match=r"log\.dirs=/data: cannot be set here: use directory="):
        given_settings(None, {"log_dirs": "/data"})


def test_a_setting_that_is_given_twice_is_rejected() -> None:
    with pytest.raises(InvalidSetting, match=r"num\.partitions=4: is given twice, also as 3"):
        given_settings({"num.partitions": 3}, {"num_partitions": 4})


def test_a_given_node_id_is_also_the_voter() -> None:
    properties = broker_properties({"node.id": "7"}, port=0, directory="/data")

    assert properties["node.id"] == "7"
    assert properties["controller.quorum.voters"].startswith("7@")
