"""`barnabas get-offsets`: print start and end offsets, or the offset of a timestamp: kafka-get-offsets.sh.

Flags, output and exit codes are those of Kafka's tool: one line TOPIC:PARTITION:OFFSET per partition, no line
if the partition has no such offset, and one line on stderr if the request failed.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.cli import option_parser
from barnabas.cli.option_parser import Options, long
from barnabas.cli.tool import (
    ToolFailed,
    add_client_options,
    admin_settings,
    note,
    print_json,
    print_lines,
    reason,
    run_reporting,
    started,
)

if TYPE_CHECKING:
    from barnabas.cli.topic.patterns import PartitionFilter
    from barnabas.client.admin.admin import Admin
    from barnabas.client.admin.records import ListedOffset

_PREFIX: Final = "Error occurred: "
_TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_NO_TIME: Final = min(_TIMES.values()) - 1
_FORMS: Final = " / ".join(f"{number} or {name}" for name, number in _TIMES.items())


class Parser(option_parser.Parser):
    prefix = _PREFIX


def arguments(parser: option_parser.Parser) -> None:
    parser.about = "print the start or end offsets of partitions, or the offset of a timestamp"
    add_client_options(parser, required=False)
    parser.option(
        "topic-partitions",
        "rules TOPICS:PARTITIONS,...; TOPICS is a regular expression (empty: all), PARTITIONS is NUMBER,"
        " FROM-END, FROM- or -END, without END itself (empty: all)",
        value="rules",
    )
    parser.option("topic", "regular expression of topics (default: all)", value="pattern")
    parser.option("partitions", "partition numbers: 0,1,2 (default: all)", value="numbers")
    parser.option(
        "time",
        f"offset to print: {_FORMS}, or a timestamp in ms: the first record at or after it (default: latest)",
        value="time",
        default="latest",
    )
    parser.flag("exclude-internal-topics", "skip internal topics")


def run(options: Options) -> int:
    options.parser.require(options, "bootstrap-server")
    return run_reporting(_main(options), prefix=_PREFIX)


async def _main(options: Options) -> int:
    from barnabas.client.admin.admin import Admin

    spec, wanted = parse_time(options.time), _filter(options)
    settings = {**admin_settings(options), "client.id": "GetOffsetShell"}
    async with started(Admin(settings)) as admin:
        partitions = await _partitions(admin, wanted, internal=not options.exclude_internal_topics)
        if not partitions:
            raise ToolFailed("Could not match any topic-partitions with the specified filters")
        found = await _offsets(admin, dict.fromkeys(partitions, spec))
    listed = {tp: found[tp] for tp in partitions if tp in found and found[tp].offset is not None}
    if options.json:
        print_json({"offsets": [_document(tp, each) for tp, each in listed.items()]})
    else:
        print_lines(f"{tp.topic}:{tp.partition}:{each.offset}" for tp, each in listed.items())
    return 0


def parse_time(text: str) -> int:
    """Parse a name such as `latest`, its number, or a timestamp."""
    if text in _TIMES:
        return _TIMES[text]
    try:
        number = long(text)
    except ValueError:
        number = _NO_TIME
    # Kafka's tool would send an undefined negative number and get an error from the broker.
    if number <= _NO_TIME:
        raise ToolFailed(
            f"Malformed time argument {text}. Please use {_FORMS}, or a specified long format timestamp"
        )
    return number


def _filter(options: Options) -> "PartitionFilter":
    from barnabas.cli.topic.patterns import by_rules, by_topic

    if options.topic_partitions is None:
        return by_topic(options.topic, options.partitions)
    if options.topic is not None or options.partitions is not None:
        raise ToolFailed("--topic-partitions cannot be used with --topic or --partitions")
    return by_rules(options.topic_partitions)


async def _partitions(admin: "Admin", wanted: "PartitionFilter", *, internal: bool) -> list[TopicPartition]:
    """Return the partitions sorted by `TOPIC-PARTITION` as text, the order of Kafka's tool."""
    topics = await admin.list_topics(internal=internal)
    found = [
        TopicPartition(name, number)
        for name, topic in topics.items()
        if wanted.allows_topic(name)
        for number in range(topic.partitions)
        if wanted.allows(name, number)
    ]
    return sorted(found, key=str)


async def _offsets(
    admin: "Admin", wanted: Mapping[TopicPartition, int]
) -> "Mapping[TopicPartition, ListedOffset]":
    from barnabas.client.admin.call import PartlyRefused

    try:
        return await admin.list_offsets(wanted)
    except PartlyRefused as error:
        for name, refused in error.refused.items():
            note(f"Skip getting offsets for topic-partition {name} due to error: {reason(refused)}")
        return error.done


def _document(tp: TopicPartition, listed: "ListedOffset") -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "offset": listed.offset,
        "timestamp": listed.timestamp_ms,
        "leaderEpoch": listed.leader_epoch,
    }
