"""What is wrong with a command line, as opposed to what went wrong in carrying it out: exit code 2."""

from barnabas.base.errors import BarnabasError


class Misuse(BarnabasError):
    """Options that cannot be, alone or together."""


def split_setting(option: str, text: str) -> tuple[str, str]:
    """NAME=VALUE, as `option` takes it."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Misuse(f"{option} {text}: must be NAME=VALUE")
    return name.strip(), value
