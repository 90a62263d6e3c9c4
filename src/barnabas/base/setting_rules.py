"""Rules for the values of settings, with their descriptions for error messages."""

from collections.abc import Callable
from typing import TypeAlias

from barnabas.base.values import value

# None only for settings that may be unset. Lists are tuples: hashable and immutable.
Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


@value
class Rule:
    """`text` completes the sentence "must be ..."."""

    text: str
    allows: Callable[[Value], bool]


def at_least(least: int) -> Rule:
    return Rule(f"at least {least}", lambda value: isinstance(value, int | float) and value >= least)


def between(least: int, most: int) -> Rule:
    return Rule(
        f"between {least} and {most}",
        lambda value: isinstance(value, int | float) and least <= value <= most,
    )


def any_of(*rules: Rule) -> Rule:
    return Rule(" or ".join(rule.text for rule in rules), lambda value: any(r.allows(value) for r in rules))


def exactly(one: int) -> Rule:
    return Rule(str(one), lambda value: value == one)


def one_of(*names: str) -> Rule:
    """One of these names, case-sensitive."""
    return Rule(f"one of {', '.join(names)}", lambda value: value in names)


def list_of(*names: str) -> Rule:
    """A list of these names, each at most once. The empty list is allowed, an empty entry is not."""

    def allows(value: Value) -> bool:
        return isinstance(value, tuple) and set(value) <= set(names) and len(set(value)) == len(value)

    return Rule(f"a list of {', '.join(names)}, each at most once", allows)
