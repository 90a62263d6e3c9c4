"""Numbers in the guides that the code defines: a constant that changes makes its sentence wrong.

Each row is a page, the sentence with a place for the number, and where the number comes from.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from barnabas.base.settings import settings_of
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.client.producer.settings import ProducerSettings
from barnabas.server.settings.catalog import BROKER
from support.docs.pages import DOCS

WORDS = {1: "one", 5: "five", 6: "six"}


class Number(NamedTuple):
    page: str
    sentence: str
    value: Callable[[], Any]


def constant(module: str, name: str, divisor: float = 1) -> Callable[[], float]:
    return lambda: getattr(import_module(f"barnabas.{module}"), name) / divisor


def default(of: Any, name: str, divisor: float = 1) -> Callable[[], float]:
    """The default of a setting."""
    return lambda: (of if isinstance(of, dict) else settings_of(of))[name].default / divisor


NUMBERS = [
    Number("guides/running.md", "Port for clients (default: {})", constant("cli.up", "PORT")),
    Number(
        "guides/running.md",
        "polls for that request for\nup to {} ms",
        constant("server.network.outlet", "BUSY_POLL_NS", 1e6),
    ),
    Number(
        "guides/tools.md", "says so after {word} seconds", constant("cli.console.subscription", "PATIENCE_S")
    ),
    Number(
        "guides/tools.md",
        "`default.api.timeout.ms`, {word} minute",
        default(ProducerSettings, "default.api.timeout.ms", 60_000),
    ),
    Number("guides/testing.md", "count, timeout_s={})", constant("testing.broker", "WAIT_TIMEOUT_S")),
    Number("guides/testing.md", "condition, timeout_s={}", constant("testing.waiting", "TIMEOUT_S")),
    Number(
        "guides/testing.md",
        "memory if {} GiB is free",
        constant("testing.places", "MEMORY_FREE_MIN", 1 << 30),
    ),
    Number(
        "guides/delivery.md",
        "`session.timeout.ms`, {} seconds",
        default(ConsumerSettings, "session.timeout.ms", 1000),
    ),
    Number(
        "guides/delivery.md",
        "every {word} seconds",
        default(ConsumerSettings, "auto.commit.interval.ms", 1000),
    ),
    Number(
        "guides/delivery.md",
        "`transaction.timeout.ms` ({word} minute)",
        default(ProducerSettings, "transaction.timeout.ms", 60_000),
    ),
    Number(
        "guides/spark.md",
        "fetches in flight per task, 1 to {}",
        constant("spark.options.source", "_FETCHES_MAX"),
    ),
    Number("guides/spark.md", "latency, at most {}:", constant("spark.source.fetching", "_FETCHES_MAX")),
    Number("guides/spark.md", "one for every {} ms", constant("spark.source.fetching", "_ROUND_TRIP_MS")),
    Number(
        "guides/spark.md",
        "`kafka.max.partition.fetch.bytes` (default: {} MiB)",
        lambda: (
            int(import_module("barnabas.spark.source.ranges")._FOR_RANGES["max.partition.fetch.bytes"]) >> 20
        ),
    ),
    Number(
        "guides/spark.md",
        "(default: {} minutes, the most that brokers allow by\n  default)",
        default(BROKER, "transaction.max.timeout.ms", 60_000),
    ),
    Number(
        "guides/spark.md",
        "(default: {} minutes, the most",
        lambda: int(import_module("barnabas.spark.options.sink")._TRANSACTION_TIMEOUT_MS) / 60_000,
    ),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: f"{one.page}: {one.sentence[:40]}")
def test_a_number_is_the_one_in_the_code(number: Number) -> None:
    value = number.value()
    sentence = number.sentence.format(f"{value:g}", word=WORDS.get(int(value), f"{value:g}"))

    assert sentence in (DOCS / number.page).read_text()
