"""Rules for values of broker settings, in addition to base/setting_rules.py."""

from typing import Final

from barnabas.base.setting_rules import Rule, Value, any_of, at_least, between, exactly


def _is_list(value: Value, least: int) -> bool:
    return (
        isinstance(value, tuple) and len(value) >= least and "" not in value and len(set(value)) == len(value)
    )


# Kafka's rules for lists since 4.1: no empty and no duplicate entries.
DISTINCT: Final = Rule("a list without empty or repeated entries", lambda value: _is_list(value, 0))
SOME_DISTINCT: Final = Rule(
    "a list of at least one entry, without empty or repeated entries", lambda value: _is_list(value, 1)
)


def some_of(*names: str) -> Rule:
    """A list of one or more of these, each at most once."""
    return Rule(
        f"a list of one or more of {', '.join(names)}, each at most once",
        lambda value: _is_list(value, 1) and isinstance(value, tuple) and set(value) <= set(names),
    )


def one_of_any_case(*names: str) -> Rule:
    lower = {name.lower() for name in names}
    return Rule(
        f"one of {', '.join(names)}, in any case",
        lambda value: isinstance(value, str) and value.lower() in lower,
    )


# Compression codec ids: none, gzip, snappy, lz4, zstd.
CODEC_ID: Final = between(0, 4)

# -1 leaves the size to the operating system.
BUFFER_BYTES: Final = any_of(exactly(-1), at_least(1))
