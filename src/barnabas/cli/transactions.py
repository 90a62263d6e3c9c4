"""`barnabas transactions`: describe transactions and abort hanging ones, as kafka-transactions.sh does.

Flags, output and exit codes are those of Kafka's tool: every error goes to stderr, and the exit code is 1.
Rows and partitions are sorted; Kafka prints some in hash map order. The options that Kafka's tool accepts
before the command are also accepted after it.
"""

import argparse
from typing import Any, Final

from barnabas.cli.argument_parser import Parser
from barnabas.cli.option_parser import KAFKA_VERSION, integer, long
from barnabas.cli.tool import admin_settings, run_reporting, started

_SHORT_MAX: Final = 0x7FFF
# The default of the broker setting transaction.max.timeout.ms.
_MAX_TIMEOUT_MINUTES: Final = 15


def short(text: str) -> int:
    """Parse a Java Short."""
    number = integer(text)
    if not -_SHORT_MAX - 1 <= number <= _SHORT_MAX:
        raise ValueError(f"{number} is out of range ({-_SHORT_MAX - 1} to {_SHORT_MAX})")
    return number


def arguments(parser: Parser) -> None:
    parser.description = (
        "list and describe the transactions of a cluster and the producers of partitions; find and abort"
        " hanging transactions"
    )
    parser.add_argument(
        "-v",
        "--version",
        action="version",
        version=KAFKA_VERSION,
        help="print the Kafka version that this tool matches",
    )
    _add_client_options(parser)
    # run() checks required options, because they may stand before or after the command.
    parser.set_defaults(misused=parser.error)
    # add_subparsers() gives subcommands the class of this parser.
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_list(commands)
    describe = _add(commands, "describe", "describe the state of a transactional id")
    describe.add_argument("--transactional-id", required=True, metavar="ID", help="transactional id")
    _add_describe_producers(commands)
    _add_abort(commands)
    _add_find_hanging(commands)
    terminate = _add(
        commands,
        "forceTerminateTransaction",
        "abort the open transaction of a transactional id and fence its producer",
    )
    terminate.add_argument("--transactionalId", required=True, metavar="ID", help="transactional id")


def _add_client_options(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """Add the options of the client. `again`: accept them after the command too, hidden in the help."""

    def add(name: str, text: str, **given: Any) -> None:
        if again:
            given["default"] = argparse.SUPPRESS
        parser.add_argument(name, help=argparse.SUPPRESS if again else text, **given)

    add(
        "--bootstrap-server",
        "REQUIRED: bootstrap servers",
        metavar="HOST:PORT,...",
    )
    add("--command-config", "properties file with client settings", metavar="FILE")
    add("--json", "print the result as one JSON document", action="store_true")


def _add(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    _add_client_options(parser, again=True)
    return parser


def _add_list(commands: Any) -> None:
    parser = _add(commands, "list", "list transactional ids and the state of their transactions")
    parser.add_argument(
        "--duration-filter",
        type=long,
        metavar="MS",
        help="only transactions open longer than MS (negative: all)",
    )
    parser.add_argument(
        "--transactional-id-pattern",
        metavar="REGEX",
        help="only transactional ids whose full name matches this regular expression (RE2)",
    )


def _add_describe_producers(commands: Any) -> None:
    parser = _add(
        commands, "describe-producers", "describe the producers of a partition and their open transactions"
    )
    parser.add_argument(
        "--broker-id",
        type=integer,
        metavar="ID",
        help="replica to ask (default: the leader of the partition)",
    )
    _add_partition(parser)


def _add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="topic name")
    parser.add_argument("--partition", type=integer, required=True, metavar="NUMBER", help="partition number")


def _add_abort(commands: Any) -> None:
    parser = _add(commands, "abort", "abort a hanging transaction in one partition")
    _add_partition(parser)
    parser.add_argument("--start-offset", type=long, metavar="OFFSET", help="first offset of the transaction")
    older = "for brokers older than 3.0, instead of --start-offset: "
    parser.add_argument("--producer-id", type=long, metavar="ID", help=f"{older}producer id")
    parser.add_argument("--producer-epoch", type=short, metavar="EPOCH", help=f"{older}producer epoch")
    parser.add_argument(
        "--coordinator-epoch", type=integer, metavar="EPOCH", help=f"{older}coordinator epoch"
    )


def _add_find_hanging(commands: Any) -> None:
    parser = _add(commands, "find-hanging", "find open transactions that no coordinator will end")
    parser.add_argument("--broker-id", type=integer, metavar="ID", help="search the replicas of this broker")
    parser.add_argument(
        "--max-transaction-timeout",
        type=integer,
        default=_MAX_TIMEOUT_MINUTES,
        metavar="MINUTES",
        help=f"ignore transactions younger than this (default: {_MAX_TIMEOUT_MINUTES})",
    )
    parser.add_argument("--topic", metavar="TOPIC", help="search this topic; required with --partition")
    parser.add_argument("--partition", type=integer, metavar="NUMBER", help="search this partition")


def run(options: argparse.Namespace) -> int:
    if options.bootstrap_server is None:
        options.misused("argument --bootstrap-server is required")
    return run_reporting(_main(options))


async def _main(options: argparse.Namespace) -> int:
    from barnabas.cli.transaction import aborting, actions, hanging
    from barnabas.client.admin.admin import Admin

    if options.command == "abort":
        aborting.check_abort(options)
    elif options.command == "find-hanging":
        hanging.check_find(options)
    do = {
        "list": actions.list_transactions,
        "describe": actions.describe,
        "describe-producers": actions.describe_producers,
        "abort": aborting.abort,
        "find-hanging": hanging.find_hanging,
        "forceTerminateTransaction": aborting.force_terminate,
    }[options.command]
    async with started(Admin(admin_settings(options))) as admin:
        return await do(admin, options)
