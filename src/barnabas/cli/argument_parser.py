"""Commands that parse their options with argparse.

Our own commands exit with 2 if the command line is invalid; the tools that Kafka has too exit with 1, as
Kafka's do. option_parser.py is for tools whose model in Kafka does not use an argparse.
"""

import argparse
import sys
from typing import NoReturn

from barnabas.base.errors import BarnabasError


class Misuse(BarnabasError):
    """An option is invalid, or options contradict each other: exit code 2. A later failure exits with 1."""


class Parser(argparse.ArgumentParser):
    """Exits with 1 when options are invalid, as the tools of Kafka that use argparse4j do."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def split_setting(option: str, text: str) -> tuple[str, str]:
    """Parse NAME=VALUE, a value of `option`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Misuse(f"{option} {text}: must be NAME=VALUE")
    return name.strip(), value
