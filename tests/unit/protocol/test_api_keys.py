"""Our API keys equal those of Kafka's own table."""

import json
from pathlib import Path

from barnabas.protocol.api_keys import ApiKey

TABLE = Path(__file__).parents[2] / "fixtures/kafka-4.3/api_versions.json"


def test_names_and_numbers_are_those_of_kafka() -> None:
    kafkas = {api["name"]: api["key"] for api in json.loads(TABLE.read_text())["apis"]}

    assert {key.name: key.value for key in ApiKey} == kafkas


def test_the_keys_of_zookeeper_times_stay_unused() -> None:
    assert [number for number in range(93) if number not in set(ApiKey)] == [4, 5, 6, 7]
