"""The checklist: its entries in order, and how one is carried out.

An entry is a sentence and a story, which is told with every client. Stories are in stories/; importing this
module does not import them, all_entries() does.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

import pytest

from support.clients.aiokafka_client import AioKafka
from support.clients.barnabas_client import Barnabas
from support.clients.client import Ability, Client
from support.clients.confluent import Confluent
from support.clients.kafka_python import KafkaPython
from support.clients.kcat import Kcat
from support.clients.stage import Stage

Story: TypeAlias = Callable[[Client, Stage], None]

# Before they are imported, so that their assertions say what was compared, as those of test modules do.
pytest.register_assert_rewrite("support.clients.stories")

CLIENTS: tuple[Client, ...] = (Confluent(), KafkaPython(), AioKafka(), Kcat(), Barnabas())
# For the tests that carry entries out: see carry_out().
SOCKETS_LEFT_OPEN = "ignore:unclosed:ResourceWarning"
_STORIES = ("administration", "producing", "consuming", "groups", "group_administration", "restarts")


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    story: Story
    needs: tuple[Ability, ...]
    # For stories that stop the broker, or that need one with all of its own defaults.
    own_broker: bool

    def why_not(self, client: Client) -> str | None:
        """Why this client cannot be asked for it, if it cannot."""
        missing = client.missing()
        if missing is not None:
            return missing
        return next((client.cannot[need] for need in self.needs if need in client.cannot), None)

    def carry_out(self, client: Client, stage: Stage) -> None:
        try:
            self.story(client, stage)
        finally:
            # kafka-python leaves the sockets of failed connections to the garbage collector. They are found
            # here, where the warning about them is ignored, and not in the middle of another test.
            gc.collect()


_entries: dict[str, Entry] = {}


def entry(
    name: str, *, needs: tuple[Ability, ...] = (), own_broker: bool = False
) -> Callable[[Story], Story]:
    """Put a story on the checklist."""

    def add(story: Story) -> Story:
        assert name not in _entries, f"two entries are called {name!r}"
        _entries[name] = Entry(name, story, needs, own_broker)
        return story

    return add


def all_entries() -> tuple[Entry, ...]:
    for name in _STORIES:
        import_module(f"support.clients.stories.{name}")
    return tuple(_entries.values())


def stage_name(entry: Entry, client: Client) -> str:
    """The start of every topic of the story, within the letters that a topic may have."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in entry.name)
    return f"{client.name}.{words}"[:200]


def skip_if_impossible(entry: Entry, client: Client) -> None:
    reason = entry.why_not(client)
    if reason is not None:
        pytest.skip(reason)
