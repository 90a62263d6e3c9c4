"""The error for invalid options."""

from barnabas.base.errors import BarnabasError


class BadOption(BarnabasError):
    """An option is invalid or conflicts with another; `name` is its documented spelling."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"option {name}: {why}")
        self.name = name
