"""Shared parts of tools that connect to a cluster: options, settings, event loop, errors, output.

A tool is a module like every command (see main.py) and looks like this:

    from barnabas.cli.option_parser import Parser, integer   # Parser by this name: main.py takes it
    from barnabas.cli.tool import add_client_options, print_json, run_async

    def arguments(parser: Parser) -> None:
        parser.about = "describe something"
        add_client_options(parser)                # --bootstrap-server, --command-config, --json
        parser.option("topic", "topic to describe", value="topic", required=True)
        parser.flag("list", "list all topics")

    def run(options: Options) -> int:
        if not options.list: options.parser.fail("...", usage=True)      # misuse: stderr, exit code 1
        return run_async(_main(options))

    async def _main(options: Options) -> int:
        from barnabas.client.admin.admin import Admin   # late: --help needs no client
        async with started(Admin(admin_settings(options))) as admin:
            ...
        return 0

run_async() is the only place where an event loop is started. started() is an async context manager that
reports on stderr what it waits for (outages.py). Errors: `_main` may raise ClientError, or ToolFailed with
the whole line; main() prints it as one line on stderr and exits with 1. A tool that must print errors as
Kafka's tool does uses run_reporting(), or catches `ClientError` and calls reason(error), which returns the
message of Kafka's exception. Results go to stdout with print(), everything else to stderr with note().
asyncio, json and the client are imported late: a tool starts in 100 ms, most of it imports.
"""

import sys
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol, TypeVar

from barnabas.base.errors import BarnabasError, Malformed
from barnabas.cli.option_parser import Parser

BOOTSTRAP: Final = "bootstrap.servers"
# Prefixes of RE2's messages, and the corresponding messages of RE2/J, which Kafka uses.
_RE2J_MESSAGES: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}
_SERIALIZERS: Final = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")


class Client(Protocol):
    async def start(self) -> Any: ...
    async def close(self) -> Any: ...


C = TypeVar("C", bound=Client)


class ToolFailed(BarnabasError):
    """A tool failed. The message is the whole line for the user."""


def add_client_options(parser: Parser, *, required: bool = True) -> None:
    """Add the options of the client. Without `required`, the tool checks --bootstrap-server itself."""
    parser.option(
        "bootstrap-server",
        "REQUIRED: bootstrap servers: HOST:PORT,...",
        value="host:port,...",
        required=required,
    )
    parser.option("command-config", "properties file with client settings", value="file")
    add_json_option(parser)


def add_json_option(parser: Parser) -> None:
    parser.flag("json", "print the result as one JSON document")


class GivenOptions(Protocol):
    """The options of a client, from either parser."""

    bootstrap_server: str | None
    command_config: str | None


def client_settings(options: GivenOptions, file: str | None = None) -> dict[str, object]:
    """Return the settings of --command-config (or of `file`), with the bootstrap servers of the options."""
    path = file if file is not None else options.command_config
    found: dict[str, object] = dict(read_properties(path)) if path is not None else {}
    if options.bootstrap_server is not None:
        found[BOOTSTRAP] = options.bootstrap_server
    return found


def admin_settings(options: GivenOptions) -> dict[str, object]:
    """Return the settings of an admin client.

    One file often serves several clients: settings of producers and consumers are dropped with a note. The
    admin client rejects settings that no client knows.
    """
    from barnabas.base.settings import settings_of
    from barnabas.client.settings import AdminSettings

    found = client_settings(options)
    unknown = [name for name in found if name not in settings_of(AdminSettings)]
    for name in _settings_of_other_clients(unknown) if unknown else ():
        note(f"{options.command_config}: {name} is a producer or consumer setting; ignored")
        del found[name]
    return found


def _settings_of_other_clients(names: Iterable[str]) -> list[str]:
    from barnabas.base.settings import settings_of
    from barnabas.client.consumer.settings import ConsumerSettings
    from barnabas.client.producer.settings import ProducerSettings

    known = {*_SERIALIZERS}
    for settings in (ProducerSettings, ConsumerSettings):
        known |= {*settings_of(settings), *settings.REFUSED}
    beginnings = tuple(each for each in known if each.endswith("."))
    return [name for name in names if name in known or name.startswith(beginnings)]


def read_properties(path: str) -> dict[str, str]:
    """Read a properties file. ToolFailed if it cannot be read."""
    from barnabas.base import properties

    try:
        with open(path, "rb") as file:
            return properties.parse(file.read())
    except OSError as error:
        raise ToolFailed(f"{path}: {error.strerror}") from None
    except Malformed as error:
        raise ToolFailed(f"{path}: {error}") from None


def run_async(main: Coroutine[Any, Any, int]) -> int:
    """Run a tool in an event loop. Ctrl-C cancels it, and it closes its clients before the program ends."""
    import asyncio

    code = asyncio.run(main)
    # Flush here, so that main() can handle a closed pipe (see main.py).
    sys.stdout.flush()
    return code


def run_reporting(main: Coroutine[Any, Any, int], *, prefix: str = "", to_stdout: bool = False) -> int:
    """Run a tool whose errors are one line: `prefix` and the reason. Kafka prints some to stdout."""
    try:
        return run_async(main)
    except BarnabasError as error:
        print(f"{prefix}{reason(error)}", file=sys.stdout if to_stdout else sys.stderr)
        return 1


@asynccontextmanager
async def started(client: C) -> "AsyncIterator[C]":
    """Start a client and close it at the end; report on stderr what it waits for."""
    from barnabas.cli.outages import Outages

    with Outages() as outages:
        await client.start()
        outages.started()
        try:
            yield client
        finally:
            await client.close()


def print_json(document: object) -> None:
    """Print a JSON document on one line."""
    import json

    print(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


def reason(error: BarnabasError) -> str:
    """Return the reason of an error; for an error response, the broker's message, as Kafka's tools do."""
    from barnabas.client.errors import Refused, SomeRefused
    from barnabas.protocol.error_codes import ErrorCode

    with_name = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR)
    if isinstance(error, SomeRefused):
        return "; ".join(map(reason, error.refused.values()))
    why = str(error)
    # The client itself raises these codes, and their messages need the name of the resource.
    if isinstance(error, Refused) and error.code not in with_name and error.message:
        why = error.message
    # Notes of the client: how long it retried, and whether an earlier attempt may have succeeded.
    notes: list[str] = getattr(error, "__notes__", [])
    return f"{why} ({'; '.join(notes)})" if notes else why


def regex_error(expression: str) -> str | None:
    """Return why brokers reject a regular expression (RE2), in the words of RE2/J; None if they accept it."""
    from barnabas.base.re2_patterns import NotRe2, compile_re2

    try:
        compile_re2(expression)
    except NotRe2 as error:
        kind = error.reason.partition(": ")[0]
        return _RE2J_MESSAGES.get(kind, kind)
    return None


def note(*words: object) -> None:
    """Print to stderr; stdout is for results."""
    print(*words, file=sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    """Print all lines with one write, which is faster than thousands of writes."""
    text = "\n".join(lines)
    if text:
        print(text)
