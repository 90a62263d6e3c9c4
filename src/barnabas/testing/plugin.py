"""The pytest plugin: a broker for the session, and a topic for each test.

pytest imports this in every session of everybody who has Barnabas installed, so it imports nothing that a
session without a broker does not need. The broker starts when the first test asks for it; with pytest-xdist
every worker has its own.
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
# Kafka's limit for a topic's name is 249.
NAME_CHARS_MAX = 200

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9._-]+")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    _spare_our_assertions(pluginmanager)
    storages = ("auto", "memory", "disk")
    group = parser.getgroup("barnabas", "a broker for tests")
    group.addoption(
        "--barnabas-storage", choices=storages, help="where the broker of this session keeps its files (auto)"
    )
    parser.addini("barnabas_storage", f"as --barnabas-storage: {', '.join(storages)}", default="auto")
    parser.addini(
        "barnabas_settings", "settings of the broker, a line each: num.partitions=3", type="linelist"
    )


def _spare_our_assertions(pluginmanager: pytest.PytestPluginManager) -> None:
    """Have the broker imported as it is.

    pytest rewrites the assertions of a whole distribution that has a plugin in it. Ours has 500 modules, and
    a broker that starts in 0.2 s would take 0.7 s, or 0.3 s with the rewritten ones cached. There is no other
    way to say so than this, and where there is no such set any more nothing is worse than without it.
    """
    marked = getattr(pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("barnabas")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(partitions=None, settings=None): what the topic of the fixture {MARKER} is like",
    )


@pytest.fixture(scope="session")
def barnabas_broker(pytestconfig: pytest.Config) -> "Iterator[Broker]":
    """A real broker for the session, one in each worker of pytest-xdist: `barnabas_broker.bootstrap`."""
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
    """Makes topics: `barnabas_topics(partitions=3, settings={...})` returns a name. They go with the test."""
    made: list[str] = []

    def make(partitions: int | None = None, settings: "dict[str, Any] | None" = None) -> str:
        name = _topic_name(request.node.name, next(_numbers(request.config)))
        made.append(barnabas_broker.create_topic(name, partitions, settings))
        return name

    yield make
    from barnabas.client.errors import UnknownTopic

    for name in made:
        # The test may have deleted it itself.
        with suppress(UnknownTopic):
            barnabas_broker.delete_topic(name)


@pytest.fixture
def barnabas_topic(barnabas_topics: Callable[..., str], request: pytest.FixtureRequest) -> str:
    """The name of a new topic, gone after the test. @pytest.mark.barnabas_topic says what it is like."""
    marker = request.node.get_closest_marker(MARKER)
    return barnabas_topics() if marker is None else barnabas_topics(*marker.args, **marker.kwargs)


def _topic_name(test: str, number: int) -> str:
    """One that tells whose it is: the test's name, as far as Kafka allows it, and a number."""
    return f"{_NOT_IN_NAMES.sub('-', test)[:NAME_CHARS_MAX].strip('-')}-{number}"


def _numbers(config: pytest.Config) -> "count[int]":
    return config.stash.setdefault(_NUMBERS, count(1))


_NUMBERS = pytest.StashKey["count[int]"]()


def _split(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip():
        raise pytest.UsageError(f"barnabas_settings: {line}: must be NAME=VALUE")
    return name.strip(), value.strip()
