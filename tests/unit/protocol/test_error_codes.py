"""Our error codes equal those of Kafka's own table and of three independent clients."""

import inspect
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypedDict

import kio.schema.errors
import pytest

from barnabas.protocol.error_codes import ErrorCode


class Row(TypedDict):
    """One line of the table printed from Kafka's Errors class."""

    code: int
    name: str
    retriable: bool
    refreshes_metadata: bool


TABLE = Path(__file__).parents[2] / "fixtures/kafka-4.3/error_codes.json"
KAFKAS: list[Row] = json.loads(TABLE.read_text())

# Both Python clients derive from one that has old Kafka names, or its own, for these.
OTHER_NAMES = {
    "UNKNOWN": "UNKNOWN_SERVER_ERROR",
    "NO_ERROR": "NONE",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "MESSAGE_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "STALE_LEADER_EPOCH_CODE": "NETWORK_EXCEPTION",
    "INVALID_TOPIC": "INVALID_TOPIC_EXCEPTION",
    "INVALID_REPLICATION_ASSIGNMENT": "INVALID_REPLICA_ASSIGNMENT",
}


def codes_of(client: ModuleType) -> dict[int, str]:
    """The codes for which a client has an error class, by Kafka's name."""
    found: dict[int, str] = {}
    for _, error in inspect.getmembers(client, inspect.isclass):
        code, name = vars(error).get("errno"), vars(error).get("message")
        if issubclass(error, client.BrokerResponseError) and isinstance(code, int) and name is not None:
            found[code] = OTHER_NAMES.get(name, name)
    return found


def test_names_and_numbers_are_those_of_kafka() -> None:
    assert {code.name: code.value for code in ErrorCode} == {row["name"]: row["code"] for row in KAFKAS}


def test_a_code_is_retriable_where_kafkas_clients_retry() -> None:
    assert {c.name for c in ErrorCode if c.retriable} == {r["name"] for r in KAFKAS if r["retriable"]}


def test_a_code_refreshes_metadata_where_kafkas_clients_do() -> None:
    ours = {c.name for c in ErrorCode if c.refreshes_metadata}

    assert ours == {r["name"] for r in KAFKAS if r["refreshes_metadata"]}


# kafka-python uses deprecated functions of Python during its import.
@pytest.mark.filterwarnings("ignore:.*Use files\\(\\) instead:DeprecationWarning")
@pytest.mark.parametrize(("client", "at_least"), [("kafka.errors", 129), ("aiokafka.errors", 75)])
def test_python_clients_know_the_codes_by_the_same_names(client: str, at_least: int) -> None:
    theirs = codes_of(import_module(client))

    assert len(theirs) >= at_least
    assert theirs == {code: ErrorCode(code).name for code in theirs}


def test_kio_agrees_on_every_code_and_on_retries() -> None:
    theirs = {e.name.upper(): (e.value, e.retriable) for e in kio.schema.errors.ErrorCode}

    assert theirs == {code.name: (code.value, code.retriable) for code in ErrorCode}


def test_every_code_is_found_by_its_number() -> None:
    assert [ErrorCode.of(row["code"]).name for row in KAFKAS] == [row["name"] for row in KAFKAS]


@pytest.mark.parametrize("code", [-32768, -2, 134, 32767])
def test_a_number_without_a_name_is_an_unknown_server_error(code: int) -> None:
    assert ErrorCode.of(code) is ErrorCode.UNKNOWN_SERVER_ERROR
