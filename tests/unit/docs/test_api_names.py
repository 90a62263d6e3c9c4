"""Calls and errors that the guides name exist, with the parameters that the guides give."""

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import barnabas.client
import barnabas.spark.lag
import barnabas.spark.prometheus
import barnabas.spark.session
from barnabas import client, testing
from barnabas.client import blocking
from barnabas.client.errors import ClientError
from barnabas.client.producer.transaction import Transaction
from support.docs.pages import DOCS, name_of, prose, spans

GUIDES = [DOCS / "guides" / f"{name}.md" for name in ("client", "delivery", "testing", "spark")]
OWNERS: list[object] = [
    client,
    testing,
    testing.Broker,
    *(getattr(module, name) for module in (client, blocking) for name in ("Admin", "Consumer", "Producer")),
    Transaction,
    barnabas.spark.lag,
    barnabas.spark.prometheus,
    barnabas.spark.session,
]
# Calls of Python, of Spark and of the reader, and a fixture.
OTHERS = {
    "barnabas_topics",
    "condition",
    "format",
    "getLogger",
    "getOrCreate",
    "mode",
    "newSession",
    "queryName",
    "remote",
    "removeListener",
    "schema",
    "setLevel",
    "sleep",
    "time",
}
CALL = re.compile(r"(?:^|[ .])(\w+)\(([^()]*)")


def calls(page: Path) -> list[tuple[str, str, str]]:
    """Where a page names a call, its name, and what stands between the parentheses."""
    return [
        (f"{name_of(page)}:{number}", *found)
        for number, text in spans(page)
        for found in CALL.findall(text)
        if not text.startswith("@")
    ]


def parameters(name: str) -> set[str]:
    found: set[str] = set()
    for owner in OWNERS:
        call = getattr(owner, name, None)
        if callable(call):
            signature = inspect.signature(call).parameters
            # Settings as keywords: their names are checked where settings are.
            if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.values()):
                return {"*"}
            found |= set(signature)
    return found


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_every_call_exists(page: Path) -> None:
    unknown = [
        f"{where}: {name}()"
        for where, name, _ in calls(page)
        if name not in OTHERS and not any(hasattr(owner, name) for owner in OWNERS)
    ]

    assert unknown == []


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_every_keyword_of_a_call_exists(page: Path) -> None:
    unknown = [
        f"{where}: {name}({keyword}=)"
        for where, name, inside in calls(page)
        if name not in OTHERS and "*" not in parameters(name)
        for keyword in re.findall(r"(\w+)=", inside)
        if keyword not in parameters(name)
    ]

    assert unknown == []


def client_errors() -> dict[str, type[ClientError]]:
    modules: list[ModuleType] = [
        import_module(one.name)
        for one in pkgutil.walk_packages(barnabas.client.__path__, "barnabas.client.")
        if one.name.endswith("errors")
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, ClientError)
    }


def test_the_tables_of_the_client_name_errors_of_the_client() -> None:
    known = client_errors()
    named = [
        name
        for _, line in prose(DOCS / "guides" / "client.md")
        if line.startswith("| `")
        for name in re.findall(r"`([A-Z]\w+)`", line.split("|")[1])
    ]

    assert len(named) > 20
    assert [name for name in named if name not in known] == []


def test_every_remedy_is_that_of_its_error() -> None:
    known = client_errors()
    rows = [
        re.fullmatch(r"\| `(\w+)` \| `(\w+)` \| .*", line) for _, line in prose(DOCS / "guides" / "client.md")
    ]
    remedies = {row[1]: row[2] for row in rows if row is not None}

    assert remedies
    assert {name: known[name].remedy.name for name in remedies} == remedies  # type: ignore[attr-defined]
