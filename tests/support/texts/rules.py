"""Rules for the wording of texts that people read: patterns that hide the subject or the reason.

Each rule is a row with the kinds of text that it covers, the pattern, a text that breaks it and a better
one; the tests check every rule against its own examples. collector.py finds the texts.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from support.texts.collector import Kind, Text

EVERYWHERE: Final = frozenset(Kind)
# Docstrings may use words that are unclear in a message but clear in front of the code.
FOR_USERS: Final = EVERYWHERE - {Kind.DOCSTRING}
# The beginning of a text or of a sentence in it. `; ` and `: ` also begin the second half of a message.
SENTENCE: Final = r"(?:^|[.!?]\s+|\n\n)[\"'`(]*"
CLAUSE: Final = r"(?:^|[.!?;:]\s+|\n\n)[\"'`(]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    kinds: frozenset[Kind]
    pattern: re.Pattern[str]
    bad: str
    better: str

    def hits(self, text: str) -> bool:
        return self.pattern.search(text) is not None


def rule(name: str, pattern: str, *, bad: str, better: str, kinds: Iterable[Kind] = FOR_USERS) -> Rule:
    return Rule(name=name, kinds=frozenset(kinds), pattern=re.compile(pattern), bad=bad, better=better)


RULES: Final = (
    rule(
        "a sentence names its subject instead of starting with what, whoever or whose",
        # A question may start with What.
        SENTENCE + r"(?:What|Whatever|Whoever|Whose|Who)\b(?![^.]*\?)",
        kinds=EVERYWHERE,
        bad="What a broker does not serve is refused with the reason.",
        better="Unsupported requests fail with an explanation.",
    ),
    rule(
        "a sentence names its subject instead of starting with one that or those who",
        SENTENCE + r"(?:One (?:that|who|which)|The ones? (?:that|who|which)|Those (?:that|who|which))\b",
        kinds=EVERYWHERE,
        bad="The one that was not used for the longest time comes first.",
        better="Ordered from least to most recently used.",
    ),
    rule(
        "a sentence does not start with a preposition and a headless clause",
        SENTENCE + r"(?:Of|To|With|For|From|In|By|Only|Not) (?:what|whatever|whoever|whom)\b",
        kinds=EVERYWHERE,
        bad="Of what another process planned, no topic is known.",
        better="A batch planned by another process carries no topic ids.",
    ),
    rule(
        "nobody, somebody and everybody are not subjects: name the client, the broker or the task",
        SENTENCE + r"(?:Nobody|Somebody|Everybody|Anybody)\b",
        kinds=EVERYWHERE,
        bad="Nobody knows which topics it meant.",
        better="The batch carries no topic ids.",
    ),
    rule(
        "a component is notified or gets a value; it is not told",
        r"\b(?:is|are|was|were|be|been) told\b",
        kinds=EVERYWHERE,
        bad="The loop is told the moment at which it runs out.",
        better="The loop schedules a timer for the deadline.",
    ),
    rule(
        "a short text does not start with a headless clause",
        CLAUSE + r"(?:what|whatever|whoever|whose|who|that which)\b(?![^.]*\?)",
        bad="what is logged (info)",
        better="log level (default: info)",
    ),
    rule(
        "a log line gives the reason as reason= and the exception as error=",
        r"\b(?:because|why|cause|exception|err|exc)=",
        kinds={Kind.LOG},
        bad="segment goes tp=%s base=%d why=%s",
        better="segment deleted tp=%s base=%d reason=%s",
    ),
    rule(
        "a log line is an event with key=value facts: no capital, no full stop",
        r"^[A-Z][a-z]*\b(?<!Java)|\.$",
        kinds={Kind.LOG},
        bad="Segment %s was deleted.",
        better="segment deleted tp=%s base=%d reason=%s",
    ),
    rule(
        "a help text is a noun phrase or an imperative: lower case, no full stop",
        r"^(?!Kafka|Spark|Java)[A-Z][a-z]+\b|[a-z)]\.$",
        kinds={Kind.HELP},
        bad="Prints the topics.",
        better="print the topics",
    ),
    rule(
        "a help text ends with its default as (default: VALUE)",
        r"\((?!default|RE2)(?:\d+|true|false|info|text|\{\})\)$",
        kinds={Kind.HELP},
        bad="records to skip (0)",
        better="skip records produced during warm-up (default: 0)",
    ),
    rule(
        "an invalid value is not `no value`: say which value is wrong and what is expected",
        r"(?<!there )\b(?:is|are|was|were|be) no (?!longer|more\b|less\b|current\b)\w+",
        kinds=FOR_USERS - {Kind.SETTING},
        bad="its latest record would be of {}, which is no time",
        better="max timestamp {} is out of range (0 to 2^63-1)",
    ),
    rule(
        "no riddles: say which value is wrong and what is expected",
        r"\b(?:there is no such|cannot be$|may not be$|it says|its time is over|cut off|nothing is left"
        r"|without a word|by now|to begin with|begin with this|of its own accord|so to speak|for good"
        r"|in the place of|as often as needed|all of it|how it is|belong together|is called now)\b",
        bad="it does not hold the {} records that it says",
        better="header says {} records, batch holds {}",
    ),
    rule(
        "the words of the field instead of private metaphors",
        r"(?i)\b(?:vigil|beneath|lanes?|handed[ _]over|handing[ _]over|whoever|somebody|nobody|shares? out"
        r"|passed over|goes on|go on|a turn|a word|a try|another try|the tries|dice|heard from|word of|told"
        r"|alarms?)\b",
        bad="records are handed over to whoever has a turn",
        better="records are passed to the next waiting fetch",
    ),
)


def offences(texts: Iterable[Text]) -> Iterator[str]:
    """Yield one line for every text that breaks a rule: file:line, the rule and the text."""
    for text in texts:
        for each in RULES:
            if text.kind in each.kinds and each.hits(text.words):
                yield f"{text}: {each.name}; for example {each.better!r} instead of {each.bad!r}"
