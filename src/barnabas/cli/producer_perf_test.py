"""`barnabas producer-perf-test`: measure produce throughput: kafka-producer-perf-test.sh of Kafka 4.3.

Flags, lines and exit codes are Kafka's, except that an unreachable broker or an unknown topic is an error.
Every record passes through the producer's send(), as in Kafka's tool, so that the figures are comparable;
--arrow sends tables of records instead, which measures the broker more than the client. --print-metrics is
not supported: the client has no metrics yet. --json prints one object per line to stdout.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli import argument_parser
from barnabas.cli.option_parser import integer, long
from barnabas.cli.tool import BOOTSTRAP, ToolFailed, print_json, run_async

if TYPE_CHECKING:
    from barnabas.cli.perf.payloads import Payload

CLIENT_ID: Final = "perf-producer-client"
REPORTING_INTERVAL_MS: Final = 5000
TRANSACTION_DURATION_MS: Final = 3000
# Prefix of a generated transactional id; a uuid follows.
TRANSACTIONAL_ID_PREFIX: Final = "performance-producer-"
_TRANSACTIONAL_ID: Final = "transactional.id"


class Parser(argument_parser.Parser):
    """Without options, prints the help and exits with 0, as Kafka's tool does."""

    def parse_args(self, words: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        if not words:
            self.print_help()
            raise SystemExit(0)
        return super().parse_args(words, namespace)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "write records to a topic at full speed or at a fixed rate, and print throughput and latency"
    )
    parser.set_defaults(fail=parser.error)
    add = parser.add_argument
    add("--bootstrap-server", metavar="HOST:PORT,...", help="bootstrap servers")
    add("--topic", required=True, metavar="TOPIC", help="topic to write to")
    add("--num-records", required=True, type=long, metavar="NUMBER", help="number of records")
    add("--throughput", required=True, type=float, metavar="RATE", help="records per second (-1: no limit)")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument(
        "--record-size", type=integer, metavar="BYTES", help="send this number of random letters"
    )
    payload.add_argument("--payload-file", metavar="FILE", help="send random payloads of this file")
    payload.add_argument("--payload-monotonic", action="store_true", help="send 0, 1, 2, ...")
    add("--payload-delimiter", default="\\n", metavar="REGEX", help="payload delimiter (default: \\n)")
    add("--command-property", nargs="+", metavar="NAME=VALUE", help="producer settings")
    add(
        "--command-config",
        metavar="FILE",
        help="properties file with producer settings; --command-property overrides it",
    )
    add("--producer-props", nargs="+", metavar="NAME=VALUE", help="(DEPRECATED) --command-property")
    add("--producer.config", metavar="FILE", dest="producer_config", help="(DEPRECATED) --command-config")
    add(
        "--warmup-records",
        type=long,
        default=0,
        metavar="NUMBER",
        help="records to send before the steady state is measured (default: 0)",
    )
    add(
        "--reporting-interval",
        type=long,
        default=REPORTING_INTERVAL_MS,
        metavar="MS",
        help=f"interval between progress lines (default: {REPORTING_INTERVAL_MS})",
    )
    add("--arrow", action="store_true", help="send Arrow tables instead of single records (needs pyarrow)")
    add("--json", action="store_true", help="print one JSON object per line")
    add("--print-metrics", action="store_true", help="not supported: this client has no metrics")
    add(
        "--transactional-id",
        metavar="ID",
        help="send in transactions with this id; overrides the setting transactional.id "
        f"(default with --transaction-duration-ms: {TRANSACTIONAL_ID_PREFIX} and a uuid)",
    )
    add(
        "--transaction-duration-ms",
        type=long,
        metavar="MS",
        help="send in transactions, each committed after this time "
        f"(default with a transactional id: {TRANSACTION_DURATION_MS})",
    )


def run(options: argparse.Namespace) -> int:
    _check(options)
    payload, size = _payload(options)
    settings = producer_settings(options)
    duration_ms = transaction_duration_ms(options, settings)
    from barnabas.cli.perf.producing import Test, measure

    test = Test(
        topic=options.topic,
        records=options.num_records,
        warmup_records=max(options.warmup_records, 0),
        rate=options.throughput,
        reporting_interval_ms=options.reporting_interval,
        arrow=options.arrow,
        payload=payload,
        payload_bytes=size,
        transaction_duration_ms=duration_ms,
    )
    return run_async(measure(settings, test, _print_json_figures if options.json else _print_line))


def _check(options: argparse.Namespace) -> None:
    if options.num_records <= 0:
        options.fail("--num-records should be greater than zero.")
    if options.warmup_records >= options.num_records:
        options.fail(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records."
        )
    if options.record_size is not None and options.record_size <= 0:
        options.fail("--record-size should be greater than zero.")
    sources = ("bootstrap_server", "command_property", "producer_props", "producer_config", "command_config")
    if all(getattr(options, source) is None for source in sources):
        options.fail(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    for name, old in (("command-property", "producer-props"), ("command-config", "producer.config")):
        if all(getattr(options, one.replace("-", "_").replace(".", "_")) is not None for one in (name, old)):
            options.fail(f"--{name} and --{old} cannot be specified together.")
    if options.transaction_duration_ms is not None and options.transaction_duration_ms <= 0:
        options.fail("--transaction-duration-ms should be greater than zero.")
    if options.reporting_interval <= 0:
        options.fail("--reporting-interval should be greater than zero.")
    if options.throughput == 0 or options.throughput != options.throughput:
        # Kafka's tool accepts 0 and then never sends a second record.
        options.fail("--throughput should be greater than zero, or -1 for no limit.")
    if options.print_metrics:
        raise ToolFailed("--print-metrics is not supported: this client has no metrics")


def producer_settings(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings of the producer."""
    from barnabas.cli.console.settings import given_settings

    properties = options.command_property or options.producer_props or []
    for text in properties:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ToolFailed(f"Invalid property: {text}")
    for option, old in (("--command-property", "producer_props"), ("--command-config", "producer_config")):
        if getattr(options, old) is not None:
            shown = old.replace("_", "-" if old == "producer_props" else ".")
            _warn(
                options,
                f"Option --{shown} has been deprecated and will be removed in a future version. "
                f"Use {option} instead.",
            )
    settings = given_settings(options.command_config or options.producer_config, properties)
    settings.setdefault("client.id", CLIENT_ID)
    if options.bootstrap_server is not None:
        settings[BOOTSTRAP] = options.bootstrap_server
    if options.transactional_id is not None:
        settings[_TRANSACTIONAL_ID] = options.transactional_id
    elif options.transaction_duration_ms is not None and _TRANSACTIONAL_ID not in settings:
        settings[_TRANSACTIONAL_ID] = _random_id()
    return settings


def _random_id() -> str:
    from random import SystemRandom

    from barnabas.base.ids import Uuid, format_uuid

    return TRANSACTIONAL_ID_PREFIX + format_uuid(Uuid(SystemRandom().randbytes(16)))


def transaction_duration_ms(options: argparse.Namespace, settings: dict[str, object]) -> int | None:
    """Return how long a transaction lasts; None if the settings name no transactional id."""
    if _TRANSACTIONAL_ID not in settings:
        return None
    given: int | None = options.transaction_duration_ms
    return TRANSACTION_DURATION_MS if given is None else given


def _payload(options: argparse.Namespace) -> "tuple[Payload, int]":
    """Return the payload generator and the approximate size of a payload."""
    from random import Random

    from barnabas.cli.perf import payloads

    # The payloads are the same in every run, as in Kafka's tool.
    rng = Random(0)
    if options.record_size is not None:
        return payloads.random_letters(options.record_size, rng), options.record_size
    if options.payload_monotonic:
        return payloads.counted, len(str(options.num_records))
    found = _read_payloads(options)
    return payloads.one_of(found, rng), max(1, sum(map(len, found)) // len(found))


def _read_payloads(options: argparse.Namespace) -> list[bytes]:
    from pathlib import Path

    from barnabas.cli.perf.payloads import split_payloads

    path = Path(options.payload_file)
    _warn(options, f"Reading payloads from: {path.absolute()}")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    if not content:
        raise ToolFailed("File does not exist or empty file provided.")
    delimiter = "\n" if options.payload_delimiter == "\\n" else options.payload_delimiter
    found = split_payloads(content, delimiter)
    _warn(options, f"Number of records read: {len(found)}")
    if not found:
        raise ToolFailed(f"{path} contains no payload")
    return found


def _warn(options: argparse.Namespace, line: str) -> None:
    print(line, file=sys.stderr if options.json else sys.stdout)


def _print_line(figures: dict[str, Any], line: str) -> None:
    print(line, flush=True)


def _print_json_figures(figures: dict[str, Any], line: str) -> None:
    from barnabas.cli.perf.java_format import without_nan

    print_json(without_nan(figures))
    sys.stdout.flush()
