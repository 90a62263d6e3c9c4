"""Apache Kafka 4.3.0 itself answers as the recording says that our broker is compared with.

BARNABAS_WRITE_ANSWERS=1 writes the recording anew (`make answers`).
"""

import os
from pathlib import Path

import pytest

from differential.broker.answers import ENDED_EARLY, as_plain, load_recorded, run_family, save_recorded
from differential.broker.compare import compare_story
from differential.broker.families import FAMILIES, story_name
from differential.broker.talk import Family
from support.kafka.broker import KafkaBroker
from support.kafka.tools import kafka_tools


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_kafka_answers_as_recorded(family: Family, tmp_path: Path) -> None:
    settings = {**family.settings, **family.settings_of_kafka}
    broker = KafkaBroker(kafka_tools(), tmp_path, settings=settings)
    broker.format()
    with broker.running():
        answers = as_plain(run_family(family, broker))
    early = {story: steps[ENDED_EARLY] for story, steps in answers.items() if ENDED_EARLY in steps}
    assert not early

    if os.environ.get("BARNABAS_WRITE_ANSWERS"):
        save_recorded(family, answers)
    recorded = load_recorded(family)
    found = [
        each
        for story in family.stories
        for each in compare_story(story_name(family, story), recorded[story], answers[story])
    ]

    assert not found, f"{len(found)} differences:\n  " + "\n  ".join(map(str, found))
