"""Our broker answers as Apache Kafka 4.3.0 does, field by field, in every story.

Kafka's answers are a recording (tests/fixtures/kafka-4.3/answers). It is checked against the real thing by
tests/interop/test_answers_of_kafka.py. What differs on purpose is in broker/differences.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from differential.broker.answers import as_plain, load_recorded, run_family
from differential.broker.compare import Mismatch, compare_story
from differential.broker.differences import DIFFERENCES, Difference, undeclared
from differential.broker.families import FAMILIES, every_story, story_name
from differential.broker.talk import Answers, Family
from support.process.our_broker import OurBroker


class Told(NamedTuple):
    """What our broker answered to a family's stories, and what it logged meanwhile."""

    answers: dict[str, Answers]
    log: str


Tell = Callable[[Family], Told]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Tell:
    """Tells the stories of a family to a broker of their own, once."""
    told: dict[str, Told] = {}

    def tell(family: Family) -> Told:
        if family.name not in told:
            broker = OurBroker(tmp_path_factory.mktemp(family.name), settings=family.settings)
            with broker.running():
                answers = as_plain(run_family(family, broker))
            told[family.name] = Told(answers, broker.output.read_text())
        return told[family.name]

    return tell


def mismatches(family: Family, story: str, ours: Tell) -> list[Mismatch]:
    kafka = load_recorded(family)[story]
    return compare_story(story_name(family, story), kafka, ours(family).answers[story])


@pytest.mark.parametrize(
    ("family", "story"), [pytest.param(*row, id=story_name(*row)) for row in every_story()]
)
def test_we_answer_as_kafka_does(family: Family, story: str, ours: Tell) -> None:
    found = undeclared(mismatches(family, story, ours))

    assert not found, f"{len(found)} differences:\n  " + "\n  ".join(map(str, found))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_nothing_that_is_asked_is_a_bug_of_ours(family: Family, ours: Tell) -> None:
    assert "Traceback" not in ours(family).log


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: f"{row.story} {row.step}")
def test_every_declared_difference_occurs(row: Difference, ours: Tell) -> None:
    seen = [
        each
        for family in FAMILIES
        for story in family.stories
        if row.may_be_in(story_name(family, story))
        for each in mismatches(family, story, ours)
    ]

    assert any(map(row.covers, seen)), f"no longer true, take it out: {row}"
