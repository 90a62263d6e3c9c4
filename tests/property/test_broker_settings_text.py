"""Whatever is written behind the name of a setting: it is understood, or refused with that one error."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.settings import InvalidSetting, format_value
from barnabas.server.settings.broker_settings import BrokerSettings
from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.change import usable
from support.broker_properties import combined

# Pieces of which listeners, voters, numbers and lists are made, and anything else.
PIECES = st.sampled_from(
    [
        "PLAINTEXT",
        "SSL",
        "CONTROLLER",
        "://",
        ":",
        ",",
        "@",
        "[",
        "]",
        "::1",
        "localhost",
        "0.0.0.0",
        "9092",
        "1",
        "-1",
        "0",
        "70000",
        "true",
        "1e9",
        "99999999999999999999999",
        "broker",
        "controller",
        "/tmp",
    ]
)
TEXTS = st.text(max_size=30) | st.lists(PIECES, max_size=8).map("".join)
NAMES = st.sampled_from(sorted(BROKER))


@given(changes=st.dictionaries(NAMES, TEXTS, max_size=3))
def test_any_text_is_parsed_or_refused(changes: dict[str, str]) -> None:
    try:
        settings = BrokerSettings.parse(combined(changes))
    except InvalidSetting:
        return

    assert BrokerSettings.parse(settings.given) == settings


@given(name=NAMES, text=TEXTS)
def test_the_shown_text_of_a_value_parses_to_the_same_value(name: str, text: str) -> None:
    setting = BROKER[name]
    try:
        value = setting.parse(text)
    except InvalidSetting:
        return

    shown = format_value(value)

    assert shown is not None
    assert setting.parse(shown) == value


@given(
    configs=st.dictionaries(NAMES | st.text(max_size=10), TEXTS, max_size=5),
    broker=st.sampled_from(["", "1"]),
)
def test_of_any_metadata_some_can_be_used_and_the_rest_is_named(configs: dict[str, str], broker: str) -> None:
    good, wrong = usable(configs, broker)

    assert good.items() <= configs.items()
    assert good.keys() | {error.name for error in wrong} == configs.keys()
    assert usable(good, broker) == (good, [])
