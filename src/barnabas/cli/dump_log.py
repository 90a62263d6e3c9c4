"""`barnabas dump-log`: print the files of a log, as kafka-dump-log.sh of Kafka 4.3 does.

Flags, lines and their streams are Kafka's. The exit code is 0 even if mismatches were found, and 1 if a file
cannot be dumped: Kafka's tool then prints an exception, ours one line. Not supported: Java classes as
decoders, and the records of tiered storage's own topic. Unlike Kafka's tool, this one never changes a file.
"""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.cli.dump.decoders import Decoder
    from barnabas.cli.dump.output import Findings, Output

# The Kafka release that this tool matches; --version prints it.
KAFKA_VERSION: Final = "4.3.0"
MESSAGE_BYTES_MAX: Final = 5 * 1024 * 1024
INT_MAX: Final = 0x7FFFFFFF

_SWITCHES: Final = {
    "print-data-log": "print keys and values of records; implied by any decoder",
    "verify-index-only": "check indexes against their logs without printing them",
    "index-sanity-check": "only check whether a broker would rebuild an index at startup",
    "deep-iteration": "print a line for each record; implied by --print-data-log",
    "skip-record-metadata": "print only keys and values, and nothing for control records",
    "offsets-decoder": "decode records of __consumer_offsets",
    "transaction-log-decoder": "decode records of __transaction_state",
    "cluster-metadata-decoder": "decode records of the metadata log",
    "share-group-state-decoder": "decode records of __share_group_state",
    "remote-log-metadata-decoder": "not supported: records of tiered storage",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.allow_abbrev = False
    parser.add_argument(
        "--files", required=True, metavar="FILE,...", help="files to dump: logs, indexes, snapshots"
    )
    for name, text in _SWITCHES.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    for what in ("key", "value"):
        parser.add_argument(
            f"--{what}-decoder-class",
            nargs="?",
            const="",
            metavar="CLASS",
            help=f"decoder of {what}s: StringDecoder, IntegerDecoder, LongDecoder or DefaultDecoder of"
            f" org.apache.kafka.tools.api (default: StringDecoder)",
        )
    parser.add_argument(
        "--max-message-size",
        type=_int32,
        default=MESSAGE_BYTES_MAX,
        metavar="SIZE",
        help=f"maximum size of a batch in bytes (default: {MESSAGE_BYTES_MAX})",
    )
    parser.add_argument(
        "--max-bytes",
        type=_int32,
        default=INT_MAX,
        metavar="SIZE",
        help="bytes to read of each log (default: all)",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=KAFKA_VERSION,
        help="print the Kafka version that this tool matches",
    )


def _int32(text: str) -> int:
    value = int(text)
    if not -INT_MAX - 1 <= value <= INT_MAX:
        raise argparse.ArgumentTypeError(f"{value} is out of range ({-INT_MAX - 1} to {INT_MAX})")
    return value


def run(options: argparse.Namespace) -> int:
    from barnabas.cli.dump.output import Findings, Output
    from barnabas.cli.dump.source import shown_path

    output = Output()
    findings = Findings()
    try:
        for argument in _files(options.files):
            path = shown_path(argument)
            output.line(f"Dumping {path}")
            _dump(path, options, findings, output)
        findings.report(output)
    finally:
        output.flush()
    return 0


def _files(text: str) -> list[str]:
    """Split at commas; drop empty names at the end, as Java's split() does."""
    names = text.split(",")
    while len(names) > 1 and not names[-1]:
        names.pop()
    return names


def _dump(path: str, options: argparse.Namespace, findings: "Findings", output: "Output") -> None:
    # Each kind of file imports its own modules: records and messages take most of the startup time.
    suffix = os.path.basename(path).rpartition(".")[2] if "." in os.path.basename(path) else ""
    match suffix:
        case "log" | "checkpoint":
            _dump_log(path, options, findings, output)
        case "index" | "timeindex":
            from barnabas.cli.dump.indexes import dump_index, dump_time_index

            sanity_only, verify_only = options.index_sanity_check, options.verify_index_only
            if suffix == "timeindex":
                dump_time_index(
                    path, sanity_only=sanity_only, verify_only=verify_only, findings=findings, output=output
                )
                return
            dump_index(
                path,
                sanity_only=sanity_only,
                verify_only=verify_only,
                bytes_max=options.max_message_size,
                findings=findings,
                output=output,
            )
        case "snapshot":
            from barnabas.cli.dump.producers import dump_snapshot

            dump_snapshot(path, output)
        case "txnindex":
            from barnabas.cli.dump.producers import dump_txn_index

            dump_txn_index(path, output)
        case _:
            output.notice(f"Ignoring unknown file {path}")


def _dump_log(path: str, options: argparse.Namespace, findings: "Findings", output: "Output") -> None:
    from barnabas.cli.dump.logs import LogOptions, dump_log

    decoder, asked_for = _decoder(options)
    contents = options.print_data_log or asked_for
    dump_log(
        path,
        decoder,
        LogOptions(
            deep=options.deep_iteration or contents,
            contents=contents,
            skip_metadata=options.skip_record_metadata,
            bytes_max=options.max_bytes,
        ),
        findings,
        output,
    )


def _decoder(options: argparse.Namespace) -> "tuple[Decoder, bool]":
    """Return the decoder, and whether an option chose it. Of several, the first in Kafka's order wins."""
    from barnabas.cli.dump import decoders

    by_flag: dict[str, Callable[..., decoders.Text]] = {
        "offsets_decoder": decoders.offsets_decoder,
        "transaction_log_decoder": decoders.transactions_decoder,
        "cluster_metadata_decoder": decoders.metadata_decoder,
        "remote_log_metadata_decoder": decoders.remote_decoder,
        "share_group_state_decoder": decoders.share_state_decoder,
    }
    for flag, decoder in by_flag.items():
        if getattr(options, flag):
            return decoder, True
    key_class, value_class = options.key_decoder_class, options.value_decoder_class
    asked_for = key_class is not None or value_class is not None
    decoder = decoders.class_decoder(
        key_class=key_class or decoders.STRING_DECODER, value_class=value_class or decoders.STRING_DECODER
    )
    return decoder, asked_for
