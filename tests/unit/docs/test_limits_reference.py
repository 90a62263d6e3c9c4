"""docs/reference/limits.md is made from the constants and settings in the code.

PYTHONPATH=src:tests python tests/unit/docs/test_limits_reference.py        # writes the page again

A limit that is renamed or goes away breaks this module; one that is added to a module with limits on the page
must be put on the page, or among those that no user meets.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from barnabas.base.settings import Setting, settings_of
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.settings import AdminSettings
from barnabas.server.settings.catalog import BROKER
from barnabas.server.settings.declare import Support
from support.docs.pages import DOCS

PAGE = DOCS / "reference" / "limits.md"
OPENING = """# Limits

Sizes, counts and times that are bounded: first those that settings change, then those that are fixed in the
code. Made from the settings and constants; a test keeps it current.
"""


class Limit(NamedTuple):
    """A constant, by module and name; what it bounds, and what happens at the bound."""

    module: str
    name: str
    unit: str
    text: str


FIXED = {
    "Requests to a broker": [
        Limit(
            "server.network.pending",
            "OTHER_REQUEST_BYTES_MAX",
            "bytes",
            "Size of a request other than Produce. The broker closes the connection that sends a larger one.",
        ),
        Limit(
            "server.network.connection",
            "PIPELINED_MAX",
            "",
            "Requests of one connection without a response. At more, the broker stops reading.",
        ),
        Limit(
            "server.network.connection",
            "WAITING_BYTES_MAX",
            "bytes",
            "Responses of one connection that the client has not taken. At more, the broker stops reading; "
            "one Fetch response may be larger.",
        ),
        Limit(
            "server.network.connection",
            "UNANSWERED_BYTES_MAX",
            "bytes",
            "Requests of one connection without a response, in bytes. A decoded request other than Produce "
            "counts 16 times its size. At more, the broker stops reading; one request may be larger.",
        ),
        Limit(
            "server.network.request_bytes",
            "MEMORY_SHARE",
            "",
            "`queued.max.request.bytes` is by default the memory divided by this: the machine's, or its "
            "control group's if that is limited. At the limit the broker stops reading large requests.",
        ),
        Limit(
            "server.network.request_bytes",
            "FRAME_BYTES_PER_S_MIN",
            "bytes",
            "Bytes a second that a large request has to come with while others wait for room under that "
            "limit. The broker closes slower connections.",
        ),
        Limit(
            "server.network.request_bytes",
            "FRAME_GRACE_MS",
            "ms",
            "Time by which such a request may be late.",
        ),
        Limit(
            "server.network.request_bytes",
            "WAITING_MS_MAX",
            "ms",
            "Time that a request may wait for its response while others wait for the room that it takes. "
            "Then the broker closes the connections that hold the most bytes.",
        ),
        Limit(
            "server.network.response_bytes",
            "MEMORY_SHARE",
            "",
            "Responses that clients have not taken may use the memory divided by this, for all connections "
            "together. Above it the broker closes the connections that hold the most.",
        ),
        Limit(
            "server.network.response_bytes",
            "LIMIT_MIN",
            "bytes",
            "The least that responses may use, however little memory there is.",
        ),
        Limit(
            "server.network.backlog",
            "BEGUN_AT_ONCE_MAX",
            "",
            "Requests of one connection that are begun before others have a turn.",
        ),
        Limit(
            "server.network.backlog",
            "BEGUN_TOGETHER_MAX",
            "",
            "The same for all connections that have sent more than that. With very many of them each begins "
            "one request in a turn.",
        ),
        Limit(
            "protocol.wire",
            "STRING_BYTES_MAX",
            "bytes",
            "Length of a string in a request, such as a group id. A longer one is malformed.",
        ),
        Limit(
            "protocol.wire",
            "ITEMS_MAX",
            "",
            "Items of all arrays of one request together. The broker closes the connection that sends more.",
        ),
        Limit(
            "protocol.wire",
            "UNKNOWN_TAGS_MAX",
            "",
            "Unknown tagged fields of one structure. A request with more is malformed.",
        ),
        Limit(
            "protocol.schema.pieces",
            "RESPONSE_BYTES_MAX",
            "bytes",
            "Size of a response that is encoded in steps. The broker closes the connection instead of "
            "sending a larger one.",
        ),
        Limit(
            "server.network.pending",
            "DECODED_AT_ONCE_BYTES_MAX",
            "bytes",
            "Size of a request that is decoded at once. A larger one is decoded in steps, with other clients "
            "served in between.",
        ),
        Limit(
            "server.network.pending",
            "COMPILED_AT_ONCE_BYTES_MAX",
            "bytes",
            "The same for requests with a compiled decoder, such as Fetch.",
        ),
        Limit(
            "server.requests.slices",
            "AT_ONCE",
            "",
            "Items of a request that are handled at once; fewer where an item takes long. The rest follows "
            "in slices, with other clients served in between.",
        ),
        Limit(
            "server.fetch.waiting",
            "PARTITIONS_AT_ONCE",
            "",
            "Partitions that a Fetch reads at once. The rest follows in slices.",
        ),
        Limit(
            "server.requests.api",
            "ENCODED_AT_ONCE_MAX",
            "",
            "Items of a response that are encoded at once. A longer response is encoded in steps.",
        ),
        Limit(
            "server.requests.error_messages",
            "MESSAGE_CHARS_MAX",
            "characters",
            "What is left of an error message that does not fit into a response, because it quotes a very "
            "long name.",
        ),
        Limit(
            "server.requests.api",
            "WHOLE_ITEMS_MAX",
            "",
            "Items of a request that cannot be handled in slices. The broker closes the connection that "
            "sends more.",
        ),
        Limit(
            "server.requests.long_requests",
            "AT_ONCE_MAX",
            "",
            "Long requests that a broker works on at once. Others wait, as the bytes that they came as.",
        ),
        Limit(
            "server.fetch.waiting",
            "_COLD_READS_MAX",
            "",
            "Disk reads that one Fetch waits for. Then it is answered with the partitions that are read.",
        ),
        Limit(
            "server.fetch.sessions",
            "EVICTION_MS",
            "ms",
            "Time that a fetch session is kept before another client may take its place in a full cache.",
        ),
    ],
    "File descriptors": [
        Limit(
            "server.ports",
            "LOGS_MAX",
            "",
            "Descriptors for the files of logs: one in 16 of the process' limit, at most this many. Files "
            "that were not used for a while are closed, and opened again when they are needed.",
        ),
        Limit(
            "server.ports",
            "LOGS_MIN",
            "",
            "The same, at least.",
        ),
        Limit(
            "server.ports",
            "RESERVE_MAX",
            "",
            "Descriptors that neither logs nor clients get: one in 8, at most this many. All others are for "
            "connections; the broker closes a connection above them at once.",
        ),
        Limit(
            "server.ports",
            "RESERVE_MIN",
            "",
            "The same, at least.",
        ),
        Limit(
            "server.ports",
            "CONNECTIONS_MIN",
            "",
            "Connections that a broker serves at least, however low the process' limit is.",
        ),
        Limit(
            "server.network.admission",
            "THROTTLE_MS_MAX",
            "ms",
            "Time that a connection above `max.connection.creation.rate` waits, and those behind it.",
        ),
        Limit(
            "storage.shortage",
            "SHORTAGE_TRIES_MAX",
            "",
            "Tries, in a minute, to write metadata or to delete a log while no descriptor or memory is left. "
            "Then the directory has failed.",
        ),
    ],
    "Topics and settings": [
        Limit(
            "controller.topic_names",
            "NAME_LENGTH_MAX",
            "characters",
            "Length of a topic's name. A longer one is refused.",
        ),
        Limit(
            "controller.config_rules",
            "VALUE_LENGTH_MAX",
            "characters",
            "Length of the value of a setting. A longer one is refused.",
        ),
        Limit(
            "controller.decision",
            "PARTITIONS_PER_REQUEST_MAX",
            "",
            "Partitions that one request can create. A request for more is refused.",
        ),
        Limit(
            "controller.decision",
            "RECORDS_PER_REQUEST_MAX",
            "",
            "Metadata records that one request can write. A request that needs more is refused.",
        ),
        Limit(
            "controller.shell",
            "REQUESTS_WAITING_MAX",
            "",
            "Requests that wait for the controller's commit. A client that sends one more has to retry.",
        ),
        Limit(
            "controller.shell",
            "REQUEST_TIMEOUT_MS",
            "ms",
            "Time for a controller request that names no timeout of its own.",
        ),
        Limit(
            "server.cluster.auto_topics",
            "IN_FLIGHT_MAX",
            "",
            "Topics being created automatically at once. Clients that ask for others retry.",
        ),
    ],
    "Regular expressions of clients": [
        Limit(
            "base.re2_patterns", "PATTERN_BYTES_MAX", "bytes", "Length of a pattern. A longer one is refused."
        ),
        Limit(
            "base.re2_patterns",
            "PATTERN_WEIGHT_MAX",
            "",
            "Characters of a pattern, where classes and repetitions count as many. A pattern of more is "
            "refused.",
        ),
        Limit(
            "base.re2_patterns",
            "PROGRAM_SIZE_MAX",
            "",
            "Instructions of a compiled pattern. A larger one is refused.",
        ),
        Limit(
            "base.re2_patterns",
            "PATTERN_MEMORY_BYTES_MAX",
            "bytes",
            "Memory for one pattern. A pattern whose program needs more is refused.",
        ),
        Limit(
            "base.re2_work",
            "WAITING_MAX",
            "",
            "Patterns that wait to be compiled or matched. A client that sends one more has to retry.",
        ),
        Limit(
            "coordinators.group.consumer.patterns",
            "COMPILED_MAX",
            "",
            "Compiled patterns of subscriptions that are kept. Others are compiled again.",
        ),
        Limit(
            "coordinators.group.consumer.patterns",
            "RESULTS_MAX",
            "",
            "Patterns of subscriptions whose topics are kept until topics are created or deleted. Others are "
            "matched again.",
        ),
        Limit(
            "coordinators.group.consumer.patterns",
            "RESULT_TOPICS_MAX",
            "",
            "Topics in all of these results together.",
        ),
        Limit(
            "coordinators.group.consumer.patterns",
            "WANTED_MAX",
            "",
            "Patterns that wait to be matched with new topics. One more is matched after a later heartbeat.",
        ),
    ],
    "Groups": [
        Limit(
            "coordinators.group.classic.joins",
            "METADATA_BYTES_MAX",
            "bytes",
            "Metadata of the members of all classic groups in one partition of `__consumer_offsets`. At "
            "more, only members with little metadata may join; others get GROUP_MAX_SIZE_REACHED.",
        ),
        Limit(
            "coordinators.group.classic.joins",
            "SMALL_METADATA_BYTES",
            "bytes",
            "Metadata of a member that may join in any case.",
        ),
        Limit(
            "coordinators.group.shard",
            "LARGE_GROUP",
            "",
            "Topics and members of a consumer group whose requests are handled at once. Requests to a larger "
            "group wait until other clients have been served.",
        ),
        Limit(
            "coordinators.group.consumer.target",
            "ASSIGNED_AT_ONCE_MAX",
            "",
            "Members times topics of a consumer group that is assigned within a request, unless all members "
            "have the same topics. A larger group is assigned in the background.",
        ),
        Limit(
            "coordinators.runtime.host",
            "ANSWERS_AT_ONCE_MAX",
            "",
            "Answers of a coordinator that are sent at once. The rest follows, with other clients served in "
            "between.",
        ),
        Limit(
            "coordinators.runtime.host",
            "TIMERS_AT_ONCE_MAX",
            "",
            "Sessions and other timers that end at once. The rest follows in the same way.",
        ),
    ],
    "Records": [
        Limit(
            "records.codecs",
            "MAX_DECOMPRESSED",
            "bytes",
            "Size of one batch when decompressed. Larger ones are neither built nor read.",
        ),
        Limit(
            "server.handlers.produce",
            "RECORD_ERRORS_MAX",
            "",
            "Records of a refused batch that are looked at to say which of them are wrong.",
        ),
        Limit("records.codecs", "MAX_GZIP_MEMBERS", "", "Members of a gzip stream in one batch."),
        Limit(
            "records.columns_read",
            "MAX_UNPACKED",
            "bytes",
            "Size of all batches that one call decompresses into Arrow columns.",
        ),
        Limit(
            "records.columns_read", "MAX_COLUMN_BYTES", "bytes", "Bytes that one Arrow result can point to."
        ),
        Limit(
            "storage.log",
            "OFFSET_SPAN_MAX",
            "offsets",
            "Range of offsets in one segment. The log rolls to a new segment before it.",
        ),
    ],
    "Metrics over HTTP": [
        Limit("base.metrics_server", "REQUEST_BYTES_MAX", "bytes", "Size of a request."),
        Limit("base.metrics_server", "CONNECTIONS_MAX", "", "Connections served at once. More get 503."),
        Limit("base.metrics_server", "REQUEST_TIMEOUT_S", "s", "Time for a request to arrive."),
        Limit("base.metrics_server", "EXCHANGE_TIMEOUT_S", "s", "Time for a request and its response."),
    ],
    "Clients": [
        Limit(
            "client.producer.settings",
            "IDEMPOTENT_IN_FLIGHT_MAX",
            "",
            "Largest `max.in.flight.requests.per.connection` of an idempotent producer.",
        ),
        Limit("client.consumer.reader", "STREAMS_MAX", "", "Streams of one consumer."),
        Limit(
            "client.admin.call",
            "UNKNOWN_MS_MAX",
            "ms",
            "Time that an admin call retries for a topic, partition or broker that is unknown.",
        ),
        Limit(
            "client.handshake",
            "HELLO_BYTES_MAX",
            "bytes",
            "Size of the first response on a connection. A larger one is not from a Kafka broker.",
        ),
    ],
    "Spark": [
        Limit("spark.options.source", "_FETCHES_MAX", "", "Largest value of `fetchesInFlight`."),
        Limit(
            "spark.source.fetching",
            "_FETCHES_MAX",
            "",
            "Fetches in flight that a task chooses itself, without `fetchesInFlight`.",
        ),
    ],
    "The test kit": [
        Limit("testing.broker", "WAIT_TIMEOUT_S", "s", "Default timeout of the `wait_for_...` helpers."),
        Limit("testing.node_thread", "START_TIMEOUT_S", "s", "Time for a broker to start."),
        Limit("testing.node_thread", "STOP_TIMEOUT_S", "s", "Time for a broker to stop."),
        Limit("testing.node_thread", "CALL_TIMEOUT_S", "s", "Time for a call such as `create_topic()`."),
        Limit("testing.log_tail", "LINES_MAX", "lines", "Log lines that an error of the broker carries."),
    ],
    "Disks that fail": [
        Limit(
            "storage.directory.full_disk",
            "QUIET_MS",
            "ms",
            "Time between two log lines about the same full disk.",
        ),
        Limit(
            "storage.manager",
            "DAMAGED_MAX",
            "",
            "Damaged segments that are logged between two starts. More are not logged.",
        ),
        Limit(
            "coordinators.runtime.shards",
            "RELOAD_AFTER_MAX_S",
            "s",
            "Longest time until a coordinator tries again to load a partition that it cannot read.",
        ),
    ],
    "Stops and faults": [
        Limit(
            "cli.serving.options",
            "STOP_TIMEOUT_S",
            "s",
            "Time of a clean stop, unless `--stop-timeout` sets it. Then the process ends at once, with exit "
            "code 1, and the next start recovers the logs.",
        ),
        Limit(
            "cli.serving.options",
            "STOP_TIMEOUT_S_MAX",
            "s",
            "The largest `--stop-timeout`.",
        ),
        Limit(
            "server.broker",
            "LEAVE_TIMEOUT_S",
            "s",
            "Time that a clean stop waits for the controller.",
        ),
        Limit(
            "server.broker",
            "FINISH_TIMEOUT_S",
            "s",
            "Time that a clean stop waits for clients to take their responses. Then it cuts them off.",
        ),
        Limit(
            "cli.serving.serve",
            "THREADS_TIMEOUT_S",
            "s",
            "Time that a start that is given up waits for logs that are being loaded.",
        ),
        Limit(
            "base.tasks",
            "RESTART_S_MAX",
            "s",
            "Pause before a background task that failed is begun again; the first pause is 1 s, and each is "
            "twice as long as the one before.",
        ),
        Limit(
            "base.faults",
            "QUIET_S",
            "s",
            "Time between two stack traces of the same place in the log. The faults in between are counted.",
        ),
    ],
    "Logs": [
        Limit(
            "base.structured_log",
            "VALUE_CHARS_MAX",
            "characters",
            "Length of one value in a log line. The rest is cut.",
        ),
        Limit("base.structured_log", "TRACEBACK_LINES_MAX", "lines", "Length of a traceback in the log."),
    ],
}
# Limits of the same modules that only pace or protect the program itself.
OF_THE_PROGRAM = {
    "SMALL_READS_MAX",
    "RECORDS_PER_BATCH_MAX",
    "DUE_AT_ONCE_MAX",
    "REFUSALS_MAX",
    "SNAPPY_MAX_RATIO",
    "INT32_MAX",
    "PLACES_MAX",
    "PORT_MAX",
    "SMALL_WEIGHT_MAX",
    "BATCHING_TRIED_AFTER_MAX",
}
OF_BROKERS = (
    "socket.request.max.bytes",
    "queued.max.request.bytes",
    "message.max.bytes",
    "fetch.max.bytes",
    "max.connections",
    "max.connections.per.ip",
    "max.connection.creation.rate",
    "connections.max.idle.ms",
    "max.incremental.fetch.session.cache.slots",
    "group.max.size",
    "group.consumer.max.size",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "offset.metadata.max.bytes",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
    "producer.id.expiration.ms",
)
OF_CLIENTS = {
    "Producer": (
        ProducerSettings,
        (
            "batch.size",
            "max.request.size",
            "buffer.memory",
            "max.in.flight.requests.per.connection",
            "max.block.ms",
            "request.timeout.ms",
            "delivery.timeout.ms",
            "transaction.timeout.ms",
        ),
    ),
    "Consumer": (
        ConsumerSettings,
        (
            "fetch.max.bytes",
            "max.partition.fetch.bytes",
            "queued.max.messages.kbytes",
            "max.poll.records",
            "max.poll.interval.ms",
            "receive.message.max.bytes",
        ),
    ),
    "Admin": (AdminSettings, ("default.api.timeout.ms", "request.timeout.ms")),
}


def page() -> str:
    return "\n".join([*lines(), ""])


def lines() -> Iterator[str]:
    yield OPENING
    yield "## Settings of brokers"
    yield ""
    yield "[All settings](settings.md) say which of them can be changed while a broker runs."
    yield ""
    yield from table_of_settings(BROKER, OF_BROKERS)
    yield "## Settings of clients"
    yield ""
    yield "[All settings of clients](client-settings.md) have the range of each as well."
    yield ""
    for title, (cls, names) in OF_CLIENTS.items():
        yield f"### {title}"
        yield ""
        yield from table_of_settings(settings_of(cls), names)
    yield "## Fixed limits"
    yield ""
    yield "No setting changes these. Headers have no limit of their own; the size of their record is limited."
    yield ""
    for title, limits in FIXED.items():
        yield f"### {title}"
        yield ""
        yield "| limit | constant | |"
        yield "| ---: | --- | --- |"
        for one in limits:
            yield f"| {shown(value_of(one), one.unit)} | `{one.module}.{one.name}` | {one.text} |"
        yield ""


def table_of_settings(known: Mapping[str, Setting], names: tuple[str, ...]) -> Iterator[str]:
    yield "| setting | default | |"
    yield "| --- | ---: | --- |"
    for name in names:
        one = known[name]
        assert isinstance(one.default, int), name
        yield f"| `{name}` | {shown(one.default, unit_of(name))} | {one.doc} |"
    yield ""


def unit_of(name: str) -> str:
    """As the last word of Kafka's names says it."""
    last = name.rpartition(".")[2]
    if last == "kbytes":
        return "KiB"
    return (
        last
        if last in ("ms", "bytes")
        else "bytes"
        if last in ("size", "memory") and "group" not in name
        else ""
    )


def value_of(limit: Limit) -> float:
    value = getattr(import_module(f"barnabas.{limit.module}"), limit.name)
    assert isinstance(value, int | float), limit
    return value


def shown(value: float, unit: str) -> str:
    if value == 2**31 - 1 and unit != "bytes":
        return "no limit" if not unit else f"{value:,} {unit}"
    if unit == "bytes" and value >= 1024 and value % 1024 == 0:
        for name, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value % size == 0:
                return f"{value // size:,} {name}"
    if unit == "ms" and value >= 1000 and value % 1000 == 0:
        for name, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
            if value % size == 0:
                return f"{value // size:,} {name}".replace("1 days", "1 day")
    if value == -1:
        # The text says what it stands for.
        return "-1"
    text = f"{value:,g}" if isinstance(value, float) else f"{value:,}"
    return f"{text} {unit}".strip()


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), f"write it again: PYTHONPATH=src:tests python {__file__}"


def test_every_limit_of_these_modules_is_on_the_page_or_no_users() -> None:
    shown_names = {(one.module, one.name) for limits in FIXED.values() for one in limits}
    missing = [
        f"{module}.{name}"
        for module in sorted({module for module, _ in shown_names})
        for name in vars(import_module(f"barnabas.{module}"))
        if name.endswith("_MAX") and not name.startswith("_") and is_declared_in(module, name)
        if (module, name) not in shown_names and name not in OF_THE_PROGRAM
    ]

    assert missing == []


def is_declared_in(module: str, name: str) -> bool:
    """And not imported from another one."""
    path = DOCS.parent / "src" / "barnabas" / (module.replace(".", "/") + ".py")
    starts = (f"{name}:", f"{name} =")
    return any(line.startswith(starts) for line in path.read_text().splitlines())


def test_only_settings_that_work_are_called_limits() -> None:
    assert [name for name in OF_BROKERS if BROKER[name].status.support is not Support.WORKS] == []


if __name__ == "__main__":
    PAGE.write_text(page())
