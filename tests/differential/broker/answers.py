"""Runs the stories of a family against a broker, and keeps what Apache Kafka 4.3.0 answered.

The recording is one file for each family, written by `make answers`; it is what our broker is compared with
where there is no Java.
"""

import json
import lzma
import time
from pathlib import Path
from typing import Any

from differential.broker.normal import Normaliser
from differential.broker.talk import Answers, BrokerUnderTest, Family, Talk
from support.kafka.sample import FIXTURES

RECORDED = FIXTURES / "answers"
AN_HOUR_MS = 3_600_000
ENDED_EARLY = "the story ended early"


def run_family(family: Family, broker: BrokerUnderTest) -> dict[str, Answers]:
    """Tell all stories in order to a broker that was just started; the answers by story."""
    base_ms = int(time.time() * 1000) - AN_HOUR_MS
    texts = {broker.address: "<address>", str(broker.logs): "<log directory>"}
    told = {}
    for name, story in family.stories.items():
        # Each story counts what it sees from one, so that a difference in one does not show in the next.
        talk = Talk(broker, Normaliser(base_ms=base_ms, texts=texts), base_ms=base_ms)
        try:
            story(talk)
        except Exception as error:
            # What was answered before stays comparable; a broker that answers differently can make a story
            # impossible to go on with, and that is a difference of its own.
            talk.answers[ENDED_EARLY] = f"{type(error).__name__}: {error}"
        finally:
            talk.close()
        told[name] = talk.answers
    return told


def load_recorded(family: Family) -> dict[str, Answers]:
    """What Kafka answered."""
    loaded: dict[str, Answers] = json.loads(lzma.decompress(_file(family).read_bytes()))
    return loaded


def save_recorded(family: Family, answers: dict[str, Answers]) -> None:
    RECORDED.mkdir(exist_ok=True)
    text = json.dumps(answers, indent=1, ensure_ascii=False)
    _file(family).write_bytes(lzma.compress(text.encode(), preset=9))


def _file(family: Family) -> Path:
    return RECORDED / f"{family.name}.json.xz"


def as_plain(value: Any) -> Any:
    """As it comes back from a file: no tuples, and keys are strings."""
    return json.loads(json.dumps(value))
