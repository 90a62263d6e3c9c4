"""What is wrong with options."""

from barnabas.base.errors import BarnabasError


class BadOption(BarnabasError):
    """An option that cannot be, or not with the others; `name` is how it is documented."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"option {name}: {why}")
        self.name = name
