"""`barnabas COMMAND ...`: find the command and run it.

A command module has a docstring whose first line is its help, `arguments(parser)` and
`run(options) -> exit code`. Exit codes: 0 done, 1 failed, 2 misused.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from barnabas import __version__
from barnabas.base.errors import BarnabasError

# The name on the command line and its line in the help; the module is cli/NAME.py.
COMMANDS = {
    "version": "what is installed, and whether its kernels are compiled",
    "demo": "a tour of what exists so far",
    "dump-log": "what is in the files of a log: kafka-dump-log.sh",
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"barnabas {__version__}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        print(f"barnabas: no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    module = import_module(f"barnabas.cli.{name.replace('-', '_')}")
    parser = argparse.ArgumentParser(prog=f"barnabas {name}", description=COMMANDS[name])
    module.arguments(parser)
    try:
        return int(module.run(parser.parse_args(words[1:])))
    except BarnabasError as error:
        print(f"barnabas {name}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has seen enough (`barnabas ... | head`). Nothing can be said to it any
        # more, and Python would try once again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {line}" for name, line in COMMANDS.items()]
    return "\n".join(["usage: barnabas COMMAND ...", "", *lines])


if __name__ == "__main__":
    sys.exit(main())
