"""The pytest plugin: a broker for the session, and a topic for each test.

pytest imports this module in every session of every user who has Barnabas installed, so it imports only what
a session without a broker needs. The broker starts when the first test requests it; with pytest-xdist every
worker has its own.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker

MARKER = "barnabas_topic"
# Kafka limits topic names to 249 characters; the rest is for a number.
NAME_CHARS_MAX = 200

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9._-]+")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    _exclude_from_rewriting(pluginmanager)
    storages = ("auto", "memory", "disk")
    group = parser.getgroup("barnabas", "a broker for tests")
    group.addoption(
        "--barnabas-storage", choices=storages, help="storage of the session's broker (default: auto)"
    )
    parser.addini("barnabas_storage", f"default of --barnabas-storage: {', '.join(storages)}", default="auto")
    parser.addini("barnabas_settings", "broker settings, one NAME=VALUE per line", type="linelist")


def _exclude_from_rewriting(pluginmanager: pytest.PytestPluginManager) -> None:
    """Exclude the package from pytest's assertion rewriting.

    pytest rewrites the assertions of every distribution that contains a plugin. Ours has 500 modules: a
    broker that starts in 0.2 s would take 0.7 s, or 0.3 s with cached rewritten modules. pytest has no public
    option for this. If the private attribute disappears, rewriting is slow but harmless.
    """
    marked = getattr(pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("barnabas")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(partitions=None, settings=None): configure the topic of the fixture {MARKER}",
    )


@pytest.fixture(scope="session")
def barnabas_broker(pytestconfig: pytest.Config) -> "Iterator[Broker]":
    """A real broker for the session, one per worker of pytest-xdist: `barnabas_broker.bootstrap`."""
    from barnabas.testing.broker import Broker
    from barnabas.testing.places import STORAGES

    storage = pytestconfig.getoption("--barnabas-storage") or pytestconfig.getini("barnabas_storage")
    if storage not in STORAGES:
        raise pytest.UsageError(f"barnabas_storage = {storage}: must be one of {', '.join(STORAGES)}")
    settings = dict(map(_split, pytestconfig.getini("barnabas_settings")))
    with Broker(settings, storage=storage) as broker:
        yield broker


@pytest.fixture
def barnabas_topics(
    barnabas_broker: "Broker", request: pytest.FixtureRequest
) -> Iterator[Callable[..., str]]:
    """Creates topics and deletes them after the test. Call it as `barnabas_topics(partitions, settings)`."""
    made: list[str] = []

    def make(partitions: int | None = None, settings: "dict[str, Any] | None" = None) -> str:
        name = _topic_name(request.node.name, next(_numbers(request.config)))
        made.append(barnabas_broker.create_topic(name, partitions, settings))
        return name

    yield make
    from barnabas.client.errors import UnknownTopic

    for name in made:
        # The test may have deleted the topic.
        with suppress(UnknownTopic):
            barnabas_broker.delete_topic(name)


@pytest.fixture
def barnabas_topic(barnabas_topics: Callable[..., str], request: pytest.FixtureRequest) -> str:
    """The name of a new topic, deleted after the test. @pytest.mark.barnabas_topic configures it."""
    marker = request.node.get_closest_marker(MARKER)
    return barnabas_topics() if marker is None else barnabas_topics(*marker.args, **marker.kwargs)


def _topic_name(test: str, number: int) -> str:
    """Build a topic name from the test's name, with characters that Kafka allows, and a number."""
    return f"{_NOT_IN_NAMES.sub('-', test)[:NAME_CHARS_MAX].strip('-')}-{number}"


def _numbers(config: pytest.Config) -> "count[int]":
    return config.stash.setdefault(_NUMBERS, count(1))


_NUMBERS = pytest.StashKey["count[int]"]()


def _split(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise pytest.UsageError(f"barnabas_settings: {line}: must be NAME=VALUE")
    return name.strip(), value.strip()
