"""Help texts, log lines, error messages, setting descriptions and docstrings follow the rules of wording.

The rules are in tests/support/texts/rules.py. Only mechanical patterns are checked: a text that passes can
still be unclear.
"""

from pathlib import Path

import pytest

import barnabas
from support.texts.collector import Kind, Text, texts_below, texts_of
from support.texts.rules import RULES, Rule, offences

SOURCE = Path(barnabas.__file__).parent
TEXTS = texts_below(SOURCE)
# Lower bounds that show that the collector still finds the texts.
LEAST = {
    Kind.HELP: 200,
    Kind.LOG: 120,
    Kind.ERROR: 900,
    Kind.MESSAGE: 60,
    Kind.SETTING: 400,
    Kind.DOCSTRING: 3000,
}


@pytest.mark.parametrize("kind", Kind)
def test_texts_of_a_kind_follow_the_rules(kind: Kind) -> None:
    found = list(offences(text for text in TEXTS if text.kind is kind))

    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", Kind)
def test_texts_of_every_kind_are_found(kind: Kind) -> None:
    assert sum(text.kind is kind for text in TEXTS) >= LEAST[kind]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_matches_its_bad_example_only(rule: Rule) -> None:
    assert rule.hits(rule.bad)
    assert not rule.hits(rule.better)


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ('parser.add_argument("--x", help="how it is")', Kind.HELP, "how it is"),
        ('ArgumentParser(description="Whose topics are")', Kind.HELP, "Whose topics are"),
        ('parser.flag("list", "what is listed")', Kind.HELP, "what is listed"),
        ('parser.option("x", f"what is kept ({D})", value="n")', Kind.HELP, "what is kept ({})"),
        ('parser.about = "what is done"', Kind.HELP, "what is done"),
        ('COMMANDS = {"up": "whatever runs"}', Kind.HELP, "whatever runs"),
        ('logger.warning("not written because=%s", e)', Kind.LOG, "not written because=%s"),
        ('self._logger.info("segment goes " "why=%s", e)', Kind.LOG, "segment goes why=%s"),
        ('raise Bad(f"{n} is no time")', Kind.ERROR, "{} is no time"),
        ('raise Bad("a " + kind + " is no time")', Kind.ERROR, "a {} is no time"),
        ('raise Bad("is no time" if x else "late")', Kind.ERROR, "is no time"),
        ('raise Bad(why="whoever asks")', Kind.ERROR, "whoever asks"),
        (
            'class Bad(Exception):\n  def __init__(s):\n    super().__init__("nobody asks")',
            Kind.ERROR,
            "nobody asks",
        ),
        ('answer(ErrorCode.NONE, "whoever asks")', Kind.ERROR, "whoever asks"),
        ('Answer(error_message="whoever asks")', Kind.ERROR, "whoever asks"),
        ('print("whoever asks", file=sys.stderr)', Kind.MESSAGE, "whoever asks"),
        ('note(f"{a}: by now")', Kind.MESSAGE, "{}: by now"),
        ('options.parser.fail("whoever asks", usage=True)', Kind.MESSAGE, "whoever asks"),
        ('int32("x", 1, "What is kept.")', Kind.SETTING, "What is kept."),
        ('def f():\n  """Whoever asks."""', Kind.DOCSTRING, "Whoever asks."),
    ],
)
def test_a_text_is_found_and_breaks_a_rule(source: str, kind: Kind, words: str) -> None:
    path = "server/settings/node.py" if kind is Kind.SETTING else "server/node.py"

    found = [text for text in texts_of(source, path) if text.words == words]

    assert [(text.kind, text.path) for text in found] == [(kind, path)]
    assert list(offences(found))


def test_an_offence_names_the_line_and_the_rule() -> None:
    texts = texts_of("\n\nlogger.info('stopped because=%s', error)\n", "server/broker.py")

    (line,) = offences(texts)

    assert line.startswith(
        "server/broker.py:3: log 'stopped because=%s': a log line gives the reason as reason="
    )


def test_a_question_may_start_with_a_question_word() -> None:
    assert not list(offences([Text("cli/demo.py", 1, Kind.DOCSTRING, "What does a commit cost? One write.")]))


def test_a_print_to_stdout_is_a_result_and_no_message() -> None:
    assert texts_of('print("whoever asks")', "cli/topics.py") == []
