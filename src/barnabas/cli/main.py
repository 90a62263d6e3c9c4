"""`barnabas COMMAND ...`: find the command and run it.

A command module has `arguments(parser)` and `run(options)`, which returns the exit code: 0 done, 1 failed,
2 invalid usage. A command whose Kafka tool parses options differently has a `Parser` class of its own. Only
the module of the chosen command is imported, and it imports its implementation in run(), so that `--help` is
quick.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from barnabas import __version__
from barnabas.base.errors import BarnabasError

# Each command with its line in the help. Its module is cli/NAME.py.
COMMANDS = {
    "up": "run a local cluster in the foreground",
    "broker": "run one node from a server.properties file: kafka-server-start.sh",
    "storage": "format and describe log directories: kafka-storage.sh",
    "version": "print the version, and whether the kernels are compiled",
    "demo": "run a Spark pipeline, kill it midway, and check that no event is lost or doubled",
    "dump-log": "print the contents of log files: kafka-dump-log.sh",
    "topics": "create, list, describe, alter and delete topics: kafka-topics.sh",
    "configs": "describe and alter settings of topics, brokers and other entities: kafka-configs.sh",
    "consumer-groups": "list, describe, delete and reset consumer groups: kafka-consumer-groups.sh",
    "transactions": "list, describe and abort transactions: kafka-transactions.sh",
    "get-offsets": "print the offsets of partitions: kafka-get-offsets.sh",
    "log-dirs": "describe the log directories of brokers: kafka-log-dirs.sh",
    "cluster": "print the cluster id and list its nodes: kafka-cluster.sh",
    "broker-api-versions": "print the API versions of brokers: kafka-broker-api-versions.sh",
    "console-producer": "write lines of standard input to a topic: kafka-console-producer.sh",
    "console-consumer": "print the records of topics: kafka-console-consumer.sh",
    "producer-perf-test": "measure the throughput of producing: kafka-producer-perf-test.sh",
    "consumer-perf-test": "measure the throughput of consuming: kafka-consumer-perf-test.sh",
    "sim": "run simulated clusters under faults, and check what they promise",
}

# The commands that `barnabas` without arguments names, with an example each.
FIRST_COMMANDS = {
    "up": "up --dir data",
    "topics": "topics --bootstrap-server 127.0.0.1:9092 --create --topic orders",
    "console-producer": "console-producer --bootstrap-server 127.0.0.1:9092 --topic orders",
    "console-consumer": "console-consumer --bootstrap-server 127.0.0.1:9092 --topic orders --from-beginning",
    "demo": "demo",
}

# The exit code that shells give a program that Ctrl-C ended.
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(first_steps())
        return 2
    if words[0] in ("-h", "--help"):
        print(usage())
        return 0
    if words[0] == "--version":
        print(f"barnabas {__version__}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        print(f"barnabas: {unknown(name)}", file=sys.stderr)
        return 2
    try:
        return _run(name, words[1:])
    except BarnabasError as error:
        print(f"barnabas {name}: {error}", file=sys.stderr)
        return _exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`barnabas ... | head`). Without this redirection Python would fail again
        # when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"barnabas {name}: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _run(name: str, words: list[str]) -> int:
    module = import_module(f"barnabas.cli.{name.replace('-', '_')}")
    make: Any = getattr(module, "Parser", None)
    if make is None:
        # Tools have their own parser and start sooner without this import.
        from argparse import ArgumentParser

        make = ArgumentParser
    parser = make(prog=f"barnabas {name}", description=COMMANDS[name])
    module.arguments(parser)
    return int(module.run(parser.parse_args(words)))


def _exit_code(error: BarnabasError) -> int:
    # Imported here because it imports argparse, which most tools do not need.
    from barnabas.cli.argument_parser import Misuse

    return 2 if isinstance(error, Misuse) else 1


def first_steps() -> str:
    lines = [
        f"  {COMMANDS[name].partition(': kafka-')[0]}\n    barnabas {example}"
        for name, example in FIRST_COMMANDS.items()
    ]
    more = "`barnabas --help` lists all commands, `barnabas COMMAND --help` the options of one."
    return "\n".join(["usage: barnabas COMMAND ...", "", *lines, "", more])


def usage() -> str:
    width = max(map(len, COMMANDS))
    commands = [f"  {name:<{width}}  {line}" for name, line in COMMANDS.items()]
    options = [
        f"  {'-h, --help':<{width}}  print this help; after a command, the options of that command",
        f"  {'--version':<{width}}  print the version",
    ]
    return "\n".join(["usage: barnabas COMMAND ...", "", *commands, "", "options:", *options])


def unknown(name: str) -> str:
    """Return the message for a name that is no command, with the nearest one if there is any."""
    from barnabas.base.settings import nearest

    what = "option" if name.startswith("-") else "command"
    known = ["--help", "--version"] if what == "option" else list(COMMANDS)
    # Kafka's scripts are called kafka-NAME.sh.
    wanted = name.removeprefix("kafka-").removesuffix(".sh")
    near = nearest(wanted, known) or next((one for one in known if one.startswith(wanted)), None)
    hint = f"did you mean {near!r}?" if near else "`barnabas --help` lists all commands"
    return f"unknown {what} {name!r}; {hint}"


if __name__ == "__main__":
    sys.exit(main())
