"""`barnabas COMMAND ...`: find the command and run it.

A command module has a docstring whose first line is its help, `arguments(parser)` and
`run(options) -> exit code`. Exit codes: 0 done, 1 failed, 2 misused. A command that has a model with other
habits brings a `Parser` of its own. Only the module of the command that is run is imported.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from barnabas import __version__
from barnabas.base.errors import BarnabasError
from barnabas.cli.misuse import Misuse

# The name on the command line and its line in the help; the module is cli/NAME.py.
COMMANDS = {
    "up": "a local cluster in the foreground",
    "broker": "one node from a server.properties file: kafka-server-start.sh",
    "storage": "format log directories and look at them: kafka-storage.sh",
    "version": "what is installed, and whether its kernels are compiled",
    "demo": "a Spark pipeline, killed on the way, and a check that it adds up",
    "dump-log": "what is in the files of a log: kafka-dump-log.sh",
    "topics": "make, list, describe, grow and delete topics: kafka-topics.sh",
    "configs": "settings of topics, brokers and others: kafka-configs.sh",
    "consumer-groups": "groups of consumers and their offsets: kafka-consumer-groups.sh",
    "transactions": "transactions and their producers: kafka-transactions.sh",
    "get-offsets": "where partitions begin and end: kafka-get-offsets.sh",
    "log-dirs": "what the brokers' directories hold: kafka-log-dirs.sh",
    "cluster": "a cluster's id and its nodes: kafka-cluster.sh",
    "broker-api-versions": "what brokers speak: kafka-broker-api-versions.sh",
    "console-producer": "lines of standard input to a topic: kafka-console-producer.sh",
    "console-consumer": "print the records of topics: kafka-console-consumer.sh",
    "producer-perf-test": "how fast records are taken: kafka-producer-perf-test.sh",
    "consumer-perf-test": "how fast records are read: kafka-consumer-perf-test.sh",
}

# What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130


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
    try:
        return _run(name, words[1:])
    except BarnabasError as error:
        print(f"barnabas {name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, Misuse) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough (`barnabas ... | head`). Nothing can be said to it any
        # more, and Python would try once again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A disk or a network that does not do what was asked of it: one line, and the file if it has one.
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"barnabas {name}: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _run(name: str, words: list[str]) -> int:
    module = import_module(f"barnabas.cli.{name.replace('-', '_')}")
    make: Any = getattr(module, "Parser", None)
    if make is None:
        # Tools do without it, which is a part of how soon they start.
        from argparse import ArgumentParser

        make = ArgumentParser
    parser = make(prog=f"barnabas {name}", description=COMMANDS[name])
    module.arguments(parser)
    return int(module.run(parser.parse_args(words)))


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {line}" for name, line in COMMANDS.items()]
    return "\n".join(["usage: barnabas COMMAND ...", "", *lines])


if __name__ == "__main__":
    sys.exit(main())
