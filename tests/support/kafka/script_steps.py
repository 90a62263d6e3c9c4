"""The command lines that are given to Kafka's tools, in the order in which they are given.

Every outcome that a user meets often has one: that it works, that the thing is there already, that it is not
there, that the value is wrong. A line is the name of the step, "|" if the tool is to end well or "!" if it is
to fail, and the arguments after the server's address.

What needs a group comes last, because there is a topic for groups then that would be seen in all that
follows: kafka_script_group_steps.py.
"""

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from support.clients.group_client import GroupProtocol
from support.kafka.script_group_steps import (
    ACTIVE,
    ALL_KINDS,
    CONSUMER_GROUPS,
    GROUP_CONSUMER,
    GROUP_FILES,
    GROUP_TOPICS,
    GROUPS_DELETED,
    NO_GROUPS_YET,
)
from support.kafka.scripts import Excuse, Step

SERVER = ("--bootstrap-server", "{address}")

# Files that a step names as {files}/NAME.
FILES: Mapping[str, str] = {
    "more.properties": "retention.bytes=1000000\nmax.message.bytes=20000\n",
    "delete.json": '{"partitions": [{"topic": "orders", "partition": 0, "offset": 2}], "version": 1}',
    "too-much.json": '{"partitions": [{"topic": "orders", "partition": 0, "offset": 9999}], "version": 1}',
    **GROUP_FILES,
}

OWN_WORDS = Excuse(
    re.compile(r".*InvalidRequestException: "),
    "We say which value of a broker was refused, and what would be right or where it is set instead.",
)
# By the name of the step.
EXCUSES: Mapping[str, Excuse] = {
    "kafka-topics: create with too many replicas": Excuse(
        re.compile(r"Error while executing topic command : Unable to replicate"),
        "Kafka's words mention cordoned log directories, of which our broker has none.",
    ),
    "kafka-configs: change what cannot be changed": OWN_WORDS,
    "kafka-configs: a wrong value for a broker": OWN_WORDS,
    "kafka-features: describe": Excuse(
        re.compile(r"Feature: kraft.version "),
        "The voters of the metadata quorum are set in the configuration (kraft.version 0).",
    ),
}

TOPICS = """
list when there is none           | --list
create                            | --create --topic orders --partitions 3 --replication-factor 1
create with defaults              | --create --topic plain
create with settings              | --create --topic a.b --config cleanup.policy=compact --config flush.ms=9
create with an assignment         | --create --topic assigned --replica-assignment 1,1
create what is there              ! --create --topic orders
create if it is not there         | --create --topic orders --if-not-exists
create with a wrong name          ! --create --topic or/ders
create with an unknown setting    ! --create --topic other --config no.such=1
create with a wrong value         ! --create --topic other --config retention.ms=abc
create with too many replicas     ! --create --topic other --replication-factor 2
create with no partitions         ! --create --topic other --partitions 0
create with an unknown broker     ! --create --topic other --replica-assignment 7
list                              | --list
list some                         | --list --topic ord.*|plain
list without internal ones        | --list --exclude-internal
describe all                      | --describe
describe one                      | --describe --topic orders
describe under-replicated ones    | --describe --under-replicated-partitions
describe unavailable ones         | --describe --unavailable-partitions
describe those under min ISR      | --describe --under-min-isr-partitions
describe those at min ISR         | --describe --at-min-isr-partitions
describe those with overrides     | --describe --topics-with-overrides
describe without internal ones    | --describe --exclude-internal
describe what is not there        ! --describe --topic nowhere
describe if it is there           | --describe --topic nowhere --if-exists
add partitions                    | --alter --topic plain --partitions 4
take partitions away              ! --alter --topic plain --partitions 2
add no partitions                 ! --alter --topic plain --partitions 4
add partitions to what is missing ! --alter --topic nowhere --partitions 4
delete                            | --delete --topic assigned
delete what is not there          ! --delete --topic nowhere
delete if it is there             | --delete --topic nowhere --if-exists
list afterwards                   | --list
describe what was changed         | --describe --topic plain
"""

# With everything that can be shown of a record.
SHOWN = " ".join(
    f"--formatter-property print.{what}=true"
    for what in ("key", "timestamp", "partition", "offset", "headers", "epoch")
)
CONSUMER = f"""
all of partition 0 | --topic orders --partition 0 --offset earliest --max-messages 3 {SHOWN}
all of partition 1 | --topic orders --partition 1 --offset earliest --max-messages 5 {SHOWN}
all of partition 2 | --topic orders --partition 2 --offset earliest --max-messages 4 {SHOWN}
from an offset     | --topic orders --partition 0 --offset 1 --max-messages 1
from the end       | --topic orders --partition 0 --offset latest --timeout-ms 1500
of no partition    | --topic orders --partition 9 --timeout-ms 1500
what is committed  | --topic orders --partition 0 --offset 0 --max-messages 2 --isolation-level read_committed
"""

OFFSETS = """
at latest                    | --topic orders --time latest
at earliest                  | --topic orders --time earliest
at max-timestamp             | --topic orders --time max-timestamp
at earliest-local            | --topic orders --time earliest-local
at latest-tiered             | --topic orders --time latest-tiered
at earliest-pending-upload   | --topic orders --time earliest-pending-upload
at -1                        | --topic orders --time -1
at -2                        | --topic orders --time -2
at -3                        | --topic orders --time -3
at -4                        | --topic orders --time -4
at -5                        | --topic orders --time -5
at -6                        | --topic orders --time -6
at the beginning of time     | --topic orders --time 0
at a time to come            | --topic orders --time 9999999999999
of all topics                |
of some partitions           | --topic orders --partitions 0,2
of a pattern                 | --topic-partitions orders:1-3,pl.*:0,a.*:-2
of a topic that is not there ! --topic nowhere
"""
DELETE_RECORDS = """
delete                    | --offset-json-file {files}/delete.json
delete more than there is | --offset-json-file {files}/too-much.json
"""
OFFSETS_AFTERWARDS = """
after records were deleted | --topic orders --time earliest
"""

TOPIC_CONFIGS = """
describe a topic           | --describe --topic orders
add to a topic             | --alter --topic orders --add-config flush.ms=9000,cleanup.policy=[compact,delete]
describe a changed topic   | --describe --entity-type topics --entity-name orders
describe all topics        | --describe --entity-type topics
describe all of a topic    | --describe --topic orders --all
delete from a topic        | --alter --topic orders --delete-config flush.ms,cleanup.policy
delete what is not set     | --alter --topic orders --delete-config retention.ms
add from a file            | --alter --topic orders --add-config-file {files}/more.properties
describe what the file set | --describe --topic orders
an unknown setting         ! --alter --topic orders --add-config no.such=1
a wrong value for a topic  ! --alter --topic orders --add-config retention.ms=abc
describe a missing topic   | --describe --topic nowhere
change a missing topic     ! --alter --topic nowhere --add-config retention.ms=1
"""
BROKER_CONFIGS = """
describe a broker                   | --describe --entity-type brokers --entity-name 1
add to a broker                     | --alter --broker 1 --add-config message.max.bytes=2000000
describe a changed broker           | --describe --broker 1
describe all of a broker            | --describe --broker 1 --all
delete from a broker                | --alter --broker 1 --delete-config message.max.bytes
add to all brokers                  | --alter --broker-defaults --add-config log.retention.ms=86400000
describe what all brokers have      | --describe --broker-defaults
describe every broker               | --describe --entity-type brokers
change what cannot be changed       ! --alter --broker 1 --add-config node.id=2
a wrong value for a broker          ! --alter --broker 1 --add-config message.max.bytes=abc
describe a broker that is not there | --describe --broker 7
"""

LOG_DIRS = """
describe all                        | --describe
describe some                       | --describe --topic-list orders,plain --broker-list 1
describe a topic that is not there  | --describe --topic-list nowhere
describe a broker that is not there ! --describe --broker-list 7
"""
CLUSTER = """
its id                                | cluster-id
list-endpoints                        | list-endpoints
list-endpoints with fenced ones       | list-endpoints --include-fenced-brokers
unregister a broker that is not there ! unregister --id 7
"""
API_VERSIONS = """
what is usable |
"""
QUORUM = """
describe its status      | describe --status
describe its replication | describe --replication
"""
FEATURES = """
describe | describe
"""
LOAD = "--topic plain --num-records 5000 --record-size 100 --throughput -1"
PRODUCER_PERFORMANCE = f"""
as fast as it goes | {LOAD}
after a warm-up    | {LOAD} --warmup-records 100
with zstd          | {LOAD} --command-property compression.type=zstd
"""


def _steps(tool: str, text: str, *, member: GroupProtocol | None = None) -> Iterator[Step]:
    for line in text.strip().splitlines():
        words = re.fullmatch(r"(.*?) +([|!]) *(.*)", line)
        assert words is not None, line
        arguments = words[3].split()
        # This one has the server after the name of the action.
        server_at = 1 if tool == "kafka-cluster" else 0
        name = f"{tool}: {words[1]}"
        yield Step(
            name=name,
            tool=tool,
            args=(*arguments[:server_at], *SERVER, *arguments[server_at:]),
            fails=words[2] == "!",
            member=member,
            excuse=EXCUSES.get(name),
        )


def _typed(name: str, line: str, typed: str, *, fails: bool = False) -> Step:
    """What is typed into a console producer."""
    tool = "kafka-console-producer"
    return Step(name=f"{tool}: {name}", tool=tool, args=(*SERVER, *line.split()), stdin=typed, fails=fails)


def _produced() -> Iterator[Step]:
    # One at a time, so that every record is a batch and the logs can be compared. Twelve of them, and in each
    # partition as many as the consumers ask for.
    orders = "--topic orders --sync --reader-property parse.key=true"
    colon = "--reader-property key.separator=:"
    yield _typed("keys and values", f"{orders} {colon}", "a:1\nb:2\nf:3\ng:4\nn:5\nä:ü\n")
    headers = "--reader-property parse.headers=true"
    yield _typed("headers", f"{orders} {headers}", "h1:v1,h2:v2\tkey\tvalue\n")
    yield _typed("null markers", f"{orders} --reader-property null.marker=NULL", "k\tNULL\n")
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        line = f"{orders} {colon} --compression-codec {codec}"
        yield _typed(f"with {codec}", line, f"{codec}:{codec * 20}\n")
    yield _typed("without a separator", f"{orders} {colon}", "novalue\n", fails=True)
    # With a key, because without one the partition is chosen by chance.
    plain = f"--topic plain --reader-property parse.key=true {colon}"
    yield _typed("without acks", f"{plain} --request-required-acks 0", "key:unacked\n")


def _dumped() -> Iterator[Step]:
    for number in range(3):
        yield Step(
            name=f"kafka-dump-log: the log of orders-{number}",
            tool="kafka-dump-log",
            args=("--deep-iteration", "--files", f"{{logs}}/orders-{number}/00000000000000000000.log"),
        )


def _groups() -> Iterator[Step]:
    yield from _steps("kafka-topics", GROUP_TOPICS)
    keyed = "--sync --reader-property parse.key=true --reader-property key.separator=:"
    yield _typed("for groups", f"--topic events {keyed}", "a:1\nb:2\nc:3\nd:4\ne:5\n")
    yield from _steps("kafka-consumer-groups", NO_GROUPS_YET)
    yield from _steps("kafka-console-consumer", GROUP_CONSUMER)
    yield from _steps("kafka-consumer-groups", CONSUMER_GROUPS)
    yield from _steps("kafka-groups", ALL_KINDS)
    for protocol in get_args(GroupProtocol):
        yield from _steps("kafka-consumer-groups", ACTIVE.replace("{kind}", protocol), member=protocol)
    yield from _steps("kafka-consumer-groups", GROUPS_DELETED)


STEPS: tuple[Step, ...] = (
    *_steps("kafka-topics", TOPICS),
    *_produced(),
    *_steps("kafka-console-consumer", CONSUMER),
    *_steps("kafka-get-offsets", OFFSETS),
    *_steps("kafka-delete-records", DELETE_RECORDS),
    *_steps("kafka-get-offsets", OFFSETS_AFTERWARDS),
    *_dumped(),
    *_steps("kafka-configs", TOPIC_CONFIGS),
    *_steps("kafka-configs", BROKER_CONFIGS),
    *_steps("kafka-log-dirs", LOG_DIRS),
    *_steps("kafka-cluster", CLUSTER),
    *_steps("kafka-broker-api-versions", API_VERSIONS),
    *_steps("kafka-metadata-quorum", QUORUM),
    *_steps("kafka-features", FEATURES),
    *_steps("kafka-producer-perf-test", PRODUCER_PERFORMANCE),
    *_groups(),
    # These make groups with names by chance.
    *_steps("kafka-console-consumer", "a whole topic | --topic events --from-beginning --max-messages 3"),
    *_steps("kafka-consumer-perf-test", "as fast as it goes | --topic plain --num-records 5000"),
)
