"""`barnabas log-dirs`: describe the log directories of brokers, as kafka-log-dirs.sh does.

Flags and output are those of Kafka's tool: two lines of text and one of JSON. Partitions are sorted; Kafka
prints them in hash map order. --json prints only the document, and adds the sizes of the disks.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.option_parser import Options, Parser, integer
from barnabas.cli.tool import (
    ToolFailed,
    add_client_options,
    admin_settings,
    print_json,
    run_reporting,
    started,
)

if TYPE_CHECKING:
    from barnabas.client.admin.cluster import LogDir
    from barnabas.client.errors import Refused

__all__ = ["Parser", "arguments", "run"]

# In practice the only error of a log directory; scripts look for the Java class name.
_STORAGE_ERROR: Final = "org.apache.kafka.common.errors.KafkaStorageException"


def arguments(parser: Parser) -> None:
    parser.about = "describe the log directories of brokers"
    add_client_options(parser, required=False)
    parser.flag("describe", "REQUIRED: describe the log directories")
    parser.option("topic-list", "only these topics: NAME,...", value="topics", default="")
    parser.option("broker-list", "only these brokers: ID,...", value="ids", default="")


def run(options: Options) -> int:
    options.parser.require(options, "bootstrap-server", "describe")
    return run_reporting(_main(options))


async def _main(options: Options) -> int:
    from barnabas.client.admin.admin import Admin

    wanted = [_id(text) for text in options.broker_list.split(",") if text]
    topics = {text for text in options.topic_list.split(",") if text}
    settings = {"client.id": "log-dirs-tool", **admin_settings(options)}
    async with started(Admin(settings)) as admin:
        brokers = sorted((await admin.describe_cluster()).nodes)
        _check_brokers(wanted, brokers)
        chosen = sorted(set(wanted)) or brokers
        if not options.json:
            print("Querying brokers for log directories information")
        found = await admin.describe_log_dirs(chosen)
    if not options.json:
        print(f"Received log directory information from brokers {_listed(chosen)}")
    print_json(_document(found, topics, with_sizes=options.json))
    return 0


def _id(text: str) -> int:
    try:
        return integer(text)
    except ValueError:
        raise ToolFailed(f'For input string: "{text}"') from None


def _check_brokers(wanted: list[int], known: list[int]) -> None:
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise ToolFailed(
            f"ERROR: The given brokers do not exist from --broker-list: {_listed(unknown)}."
            f" Current existent brokers: {_listed(known)}"
        )


def _listed(ids: list[int]) -> str:
    return ",".join(map(str, ids))


def _document(
    found: "Mapping[int, Mapping[str, LogDir]]", topics: set[str], *, with_sizes: bool
) -> dict[str, Any]:
    brokers = [
        {"broker": broker, "logDirs": [_log_dir(each, topics, with_sizes) for each in dirs.values()]}
        for broker, dirs in found.items()
    ]
    return {"brokers": brokers, "version": 1}


def _log_dir(log_dir: "LogDir", topics: set[str], with_sizes: bool) -> dict[str, Any]:
    partitions = [
        {
            "partition": str(tp),
            "size": log.size_bytes,
            "offsetLag": log.offset_lag,
            "isFuture": log.future,
        }
        for tp, log in sorted(log_dir.replicas.items())
        if not topics or tp.topic in topics
    ]
    shown: dict[str, Any] = {
        "partitions": partitions,
        "error": None if log_dir.error is None else _error(log_dir.error),
        "logDir": log_dir.path,
    }
    if with_sizes:
        shown |= {"totalBytes": log_dir.total_bytes, "usableBytes": log_dir.usable_bytes}
    return shown


def _error(error: "Refused") -> str:
    from barnabas.protocol.error_codes import ErrorCode

    return _STORAGE_ERROR if error.code is ErrorCode.KAFKA_STORAGE_ERROR else error.code.name
