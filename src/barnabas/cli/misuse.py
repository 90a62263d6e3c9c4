"""Errors in the command line itself: exit code 2. A command that fails later exits with 1."""

from barnabas.base.errors import BarnabasError


class Misuse(BarnabasError):
    """An option is invalid, or options contradict each other."""


def split_setting(option: str, text: str) -> tuple[str, str]:
    """Parse NAME=VALUE, a value of `option`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Misuse(f"{option} {text}: must be NAME=VALUE")
    return name.strip(), value
