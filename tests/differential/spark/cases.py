"""Options of batch queries: what spark-sql-kafka does with each set of them is recorded.

The topics are those of topics.py. A case reads all of `orders` unless it chooses something else.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from differential.spark.topics import FIRST_MS

Options = Mapping[str, str]
CHOICES: Final = ("assign", "subscribe", "subscribepattern")


class Case(NamedTuple):
    """`why` is in our message where we refuse it. `tasks`: the number of tasks is compared, too."""

    name: str
    options: Options
    why: str = ""
    tasks: bool = False
    # Nothing is added to the options.
    bare: bool = False

    def given(self, address: str) -> dict[str, str]:
        """Spark's own asks three times, a second apart, whatever is wrong: here without the pause."""
        if self.bare:
            return dict(self.options)
        chosen = any(name.lower() in CHOICES for name in self.options)
        return {
            "kafka.bootstrap.servers": address,
            "fetchOffset.retryIntervalMs": "1",
            **({} if chosen else {"subscribe": "orders"}),
            **self.options,
        }


def ms(seconds: float) -> str:
    return str(FIRST_MS + int(1000 * seconds))


def at(topic: str, *values: object) -> str:
    """JSON of a value for each partition of the topic."""
    inner = ",".join(f'"{number}":{value}' for number, value in enumerate(values))
    return f'{{"{topic}":{{{inner}}}}}'


def orders(*values: object) -> str:
    return at("orders", *values)


def _of(topic: str, start: int | None = None, end: int | None = None, **more: str) -> Options:
    """One partition, or a part of it."""
    told = {"startingOffsets": start, "endingOffsets": end}
    offsets = {name: at(topic, offset) for name, offset in told.items() if offset is not None}
    return {"subscribe": topic, **offsets, **more}


# Where a task waits for records that do not come.
HASTY: Final = {"kafkaConsumer.pollTimeoutMs": "2000"}
LENIENT: Final = {"failOnDataLoss": "false"}
COMMITTED: Final = {"kafka.isolation.level": "read_committed"}
LATEST: Final = {"startingOffsetsByTimestampStrategy": "latest"}

TOPICS: Final = (
    Case("everything", {}),
    Case("topics with spaces and twice", {"subscribe": " orders , orders-bills,,orders"}),
    Case("some partitions", {"assign": '{"orders":[2,0]}'}),
    Case("partitions of two topics", {"assign": '{"orders":[1],"orders-bills":[0]}'}),
    Case("pattern of the whole name", {"subscribePattern": "^orders$"}),
    Case("pattern of several topics", {"subscribePattern": "orders.*"}),
    Case("pattern of a part of the name", {"subscribePattern": "rs-b"}),
    Case("pattern of two names", {"subscribePattern": "^(orders|orders-bills)$"}),
    Case("pattern in any case", {"subscribePattern": "(?i)ORDERS"}),
    Case("pattern with spaces around", {"subscribePattern": " ^orders$ "}),
    Case("pattern of no topic", {"subscribePattern": "no-topic-is-called-so"}),
    Case("pattern of the cluster's own topics", {"subscribePattern": "^__.*"}),
    Case("pattern of Java alone", {"subscribePattern": r"^orders\p{Punct}\p{Alpha}+$"}, "is no pattern"),
    Case("topic of the cluster itself", {"subscribe": "__consumer_offsets"}),
    Case("two choices", {"subscribe": "orders", "assign": '{"orders":[0]}'}, "exactly one of them"),
    Case("topics and a pattern", {"subscribe": "orders", "subscribePattern": "o"}, "exactly one of them"),
    Case("no topic", {"subscribe": " , "}, "names no topic"),
    Case("empty pattern", {"subscribePattern": " "}, "is empty"),
    Case("broken pattern", {"subscribePattern": "orders("}, "is no pattern"),
    Case("assign without JSON", {"assign": "orders"}, "is no JSON"),
    Case("assign without a list", {"assign": '{"orders":0}'}, "not a list"),
    Case("assign nothing", {"assign": "{}"}, "names no partition"),
    Case("assign an empty list", {"assign": '{"orders":[]}'}, "not a list"),
    Case("assign a partition twice", {"assign": '{"orders":[0,0]}'}, "is there twice"),
    Case(
        "assign a partition that is not there",
        {"assign": '{"orders":[0,7]}', "fetchOffset.numRetries": "1"},
        "orders-7",
    ),
    Case("assign a partition as text", {"assign": '{"orders":["0"]}'}, "no partition of topic"),
    Case("assign a topic that is not there", {"assign": '{"nowhere":[0]}'}, "nowhere"),
    Case("topic that is not there", {"subscribe": "orders,nowhere"}, "nowhere"),
    Case("name that no topic can have", {"subscribe": "no name?"}, "no name?"),
)

STARTS: Final = (
    Case("earliest", {"startingOffsets": " Earliest "}),
    Case("offsets", {"startingOffsets": orders(50, -2, 2)}),
    Case("offsets with spaces around", {"startingOffsets": f" {orders(50, 1, 2)} "}),
    Case("offset of the end", {"startingOffsets": orders(60, 25, 3)}),
    Case(
        "offsets of two topics",
        {
            "subscribe": "orders,orders-bills",
            "startingOffsets": '{"orders":{"0":59,"1":24,"2":2},"orders-bills":{"0":8}}',
        },
    ),
    Case(
        "offsets of assigned partitions",
        {
            "assign": '{"orders":[1]}',
            "startingOffsets": '{"orders":{"1":20}}',
        },
    ),
    Case("offsets of an empty partition", {"subscribe": "sparse", "startingOffsets": at("sparse", 3, 0)}),
    Case("start at latest", {"startingOffsets": "latest"}, "cannot start at latest"),
    Case(
        "start one partition at latest",
        {"startingOffsets": orders(0, -1, 0)},
        "orders-1 cannot start at latest",
    ),
    Case("start at a word", {"startingOffsets": "newest"}, "'newest' is none of"),
    Case("start at nothing", {"startingOffsets": ""}, "is none of"),
    Case("start without a partition", {"startingOffsets": orders(0, 0)}, "orders-2 is not in it"),
    Case(
        "start with a partition too many", {"startingOffsets": orders(0, 0, 0, 0)}, "orders-3 is not one of"
    ),
    Case("start of another topic", {"startingOffsets": at("orders-bills", 0)}, "orders-0 is not in it"),
    Case("start with no partitions", {"startingOffsets": "{}"}, "names no partition"),
    Case("start at text", {"startingOffsets": orders(0, '"x"', 0)}, "which is no offset"),
    Case("start at a number as text", {"startingOffsets": orders(50, '"20"', 0)}, "which is no offset"),
    Case("start at a fraction", {"startingOffsets": orders(50, 20.7, 0)}, "which is no offset"),
    Case("start at null", {"startingOffsets": orders(50, "null", 0)}, "which is no offset"),
    Case("start at -3", {"startingOffsets": orders(50, -3, 0)}, "which is no offset"),
    Case("start twice", {"startingOffsets": '{"orders":{"0":0,"1":0,"2":0,"0":50}}'}, "is there twice"),
    Case("start with text after it", {"startingOffsets": orders(50, 20, 0) + " and so on"}, "is no JSON"),
    Case("start after the end", {"startingOffsets": orders(61, 0, 0)}, "orders-0"),
    Case("start after the end, lenient", {"startingOffsets": orders(61, 0, 0), **LENIENT}, "orders-0"),
    Case("start at the offsets of a group", {"startingOffsets": "group", "kafka.group.id": "shop"}),
    Case("start at the offsets of no group", {"startingOffsets": "group"}, "of which group"),
)

START_TIMES: Final = (
    Case("time", {"startingTimestamp": ms(2)}),
    Case("time with spaces and a sign", {"startingTimestamp": f" +{ms(2)} "}),
    Case("time between records", {"startingTimestamp": ms(1.005)}),
    Case("time before all", {"startingTimestamp": "0"}),
    Case("times", {"startingOffsetsByTimestamp": orders(ms(59), ms(20), ms(0))}),
    Case("time that is too late", {"startingTimestamp": ms(10)}, "orders-2 has no record since"),
    Case(
        "time that is too late, from the end",
        {
            "startingTimestamp": ms(10),
            "startingOffsetsByTimestampStrategy": "Latest",
        },
    ),
    Case(
        "times that are too late",
        {"startingOffsetsByTimestamp": orders(ms(0), ms(0), ms(9))},
        "orders-2 has no record since",
    ),
    Case(
        "times that are too late, from the end",
        {
            "startingOffsetsByTimestamp": orders(ms(99), ms(99), ms(1)),
            **LATEST,
        },
    ),
    Case(
        "time that is not too late, with strategy error",
        {
            "startingTimestamp": ms(2),
            "startingOffsetsByTimestampStrategy": "error",
        },
    ),
    Case("another strategy", {"startingOffsetsByTimestampStrategy": "earliest"}, "neither error nor latest"),
    Case(
        "time in an empty partition",
        {"subscribe": "sparse", "startingTimestamp": "0"},
        "sparse-1 has no record",
    ),
    Case(
        "time in an empty partition, from the end",
        {"subscribe": "sparse", "startingTimestamp": "0", **LATEST},
    ),
    Case("time before what is deleted", {"subscribe": "aged", "startingTimestamp": ms(3)}),
    Case("time in a gap", {"subscribe": "compacted", "startingTimestamp": ms(13)}),
    Case("time of an aborted record", {"subscribe": "payments", "startingTimestamp": ms(7), **COMMITTED}),
    Case(
        "time of an open transaction",
        {"subscribe": "payments", "startingTimestamp": ms(11), **COMMITTED},
        "payments-0 has no record since",
    ),
    Case("time of an open transaction, uncommitted", {"subscribe": "payments", "startingTimestamp": ms(11)}),
    Case(
        "time over times over offsets",
        {
            "startingTimestamp": ms(2),
            "startingOffsetsByTimestamp": orders(ms(0), ms(0), ms(0)),
            "startingOffsets": "earliest",
        },
    ),
    Case(
        "time over what is no JSON",
        {
            "startingTimestamp": ms(2),
            "startingOffsetsByTimestamp": "x",
            "startingOffsets": "newest",
        },
    ),
    Case(
        "times over offsets",
        {
            "startingOffsetsByTimestamp": orders(ms(59), ms(20), ms(0)),
            "startingOffsets": orders(0, 0, 0),
        },
    ),
    Case("time as a word", {"startingTimestamp": "yesterday"}, "is no whole number"),
    Case("time with an underscore", {"startingTimestamp": "1_790_000_002_000"}, "is no whole number"),
    Case("time out of range", {"startingTimestamp": "9223372036854775808"}, "is not between"),
    Case(
        "times without a partition",
        {"startingOffsetsByTimestamp": orders(ms(0), ms(0))},
        "orders-2 is not in it",
    ),
    Case("times that are no JSON", {"startingOffsetsByTimestamp": ms(0)}, "no object of topics"),
    # The ends of the log as times
    Case("time -1", {"startingTimestamp": "-1"}),
    Case("time -2", {"startingTimestamp": "-2"}),
    Case("times -1 and -2", {"startingOffsetsByTimestamp": orders(ms(59), -1, -2)}),
    Case("time -1 in an empty partition", {"subscribe": "sparse", "startingTimestamp": "-1"}),
    Case("time -2 in an empty partition", {"subscribe": "sparse", "startingTimestamp": "-2"}),
    Case("time -2 before what is deleted", {"subscribe": "aged", "startingTimestamp": "-2"}),
    Case(
        "time -1 with an open transaction", {"subscribe": "payments", "startingTimestamp": "-1", **COMMITTED}
    ),
    Case("time -1 from the end", {"startingTimestamp": "-1", **LATEST}),
    Case("time -3", {"startingTimestamp": "-3"}, "is not between"),
    Case("time -7", {"startingTimestamp": "-7"}, "is not between"),
    Case("times -3", {"startingOffsetsByTimestamp": orders(-3, -3, -3)}, "which is no offset"),
)

ENDS: Final = (
    Case("latest", {"endingOffsets": "LATEST"}),
    Case("ending offsets", {"endingOffsets": orders(10, -1, 0)}),
    Case("ending time", {"endingTimestamp": ms(2)}),
    Case("ending time that is too late", {"endingTimestamp": ms(30)}),
    Case("ending times", {"endingOffsetsByTimestamp": orders(ms(1), ms(99), ms(0))}),
    Case(
        "ending time over times over offsets",
        {
            "endingTimestamp": ms(2),
            "endingOffsetsByTimestamp": orders(ms(1), ms(99), ms(0)),
            "endingOffsets": "latest",
        },
    ),
    Case(
        "ending times over offsets",
        {
            "endingOffsetsByTimestamp": orders(ms(1), ms(99), ms(0)),
            "endingOffsets": orders(0, 0, 0),
        },
    ),
    # The strategy is of starting times alone.
    Case(
        "ending time that is too late, with strategy error",
        {
            "endingTimestamp": ms(99),
            "startingOffsetsByTimestampStrategy": "error",
        },
    ),
    Case("ending time -1", {"endingTimestamp": "-1"}),
    Case("ending time -2", {"endingTimestamp": "-2"}),
    Case("ending times -1 and -2", {"endingOffsetsByTimestamp": orders(-1, -2, ms(1))}),
    Case("from time -2 to time -1", {"startingTimestamp": "-2", "endingTimestamp": "-1"}),
    Case(
        "from times -2 to times -1",
        {
            "startingOffsetsByTimestamp": orders(-2, -2, -2),
            "endingOffsetsByTimestamp": orders(-1, -1, -1),
        },
    ),
    Case("from time -1 to time -2", {"startingTimestamp": "-1", "endingTimestamp": "-2"}, "before it starts"),
    Case("from a time to time -2", {"startingTimestamp": ms(2), "endingTimestamp": "-2"}, "before it starts"),
    Case("ending time -3", {"endingTimestamp": "-3"}, "is not between"),
    Case(
        "from offsets to offsets",
        {
            "startingOffsets": orders(10, 0, -2),
            "endingOffsets": orders(20, 0, -1),
        },
    ),
    Case("from offsets to a time", {"startingOffsets": orders(1, 1, 1), "endingTimestamp": ms(2)}),
    Case("from a time to offsets", {"startingTimestamp": ms(2), "endingOffsets": orders(5, 5, -1)}),
    Case("from a time to the same", {"startingTimestamp": ms(2), "endingTimestamp": ms(2)}),
    Case("end at earliest", {"endingOffsets": "earliest"}, "is none of"),
    Case(
        "end one partition at earliest",
        {"endingOffsets": orders(1, -2, 1)},
        "orders-1 cannot end at its beginning",
    ),
    Case("end without a partition", {"endingOffsets": orders(1, 1)}, "orders-2 is not in it"),
    Case("ending time as a word", {"endingTimestamp": "never"}, "is no whole number"),
    Case(
        "ending times without a partition",
        {"endingOffsetsByTimestamp": orders(ms(0), ms(0))},
        "orders-2 is not in it",
    ),
    Case(
        "from offsets back to offsets",
        {
            "startingOffsets": orders(5, 5, 3),
            "endingOffsets": orders(5, 4, 3),
        },
        "orders-1 ends at 4, before it starts at 5",
    ),
    Case(
        "from times back to times",
        {
            "startingOffsetsByTimestamp": orders(ms(5), ms(5), ms(0)),
            "endingOffsetsByTimestamp": orders(ms(5), ms(4), ms(0)),
        },
        "before it starts",
    ),
    Case(
        "from a time back to a time",
        {"startingTimestamp": ms(2), "endingTimestamp": ms(1)},
        "before it starts",
    ),
    Case(
        "from offsets back to a time",
        {"startingOffsets": orders(9, 9, 1), "endingTimestamp": ms(5)},
        "orders-0 ends at 5, before",
    ),
    Case(
        "from a time back to offsets",
        {"startingTimestamp": ms(2), "endingOffsets": orders(5, 1, -1)},
        "orders-1 ends at 1, before",
    ),
    Case(
        "end after the end",
        {"endingOffsets": orders(61, 0, 0), **HASTY},
        "orders-0",
    ),
)

LOGS: Final = (
    # What is deleted
    Case("aged: everything", _of("aged")),
    Case("aged: from earliest to latest", _of("aged", -2, -1)),
    Case("aged: what is left", _of("aged", 10, 30)),
    Case("aged: from the beginning", _of("aged", 0, **HASTY), "begins at 10 now"),
    Case("aged: from the beginning, lenient", _of("aged", 0, **LENIENT, **HASTY)),
    Case("aged: from before to the middle", _of("aged", 5, 20, **HASTY), "begins at 10 now"),
    Case("aged: from before to the middle, lenient", _of("aged", 5, 20, **LENIENT, **HASTY)),
    Case("aged: all of it gone", _of("aged", 0, 8, **HASTY), "begins at 10 now"),
    Case("aged: all of it gone, lenient", _of("aged", 0, 8, **LENIENT, **HASTY)),
    Case("aged: nothing of what is gone", _of("aged", 9, 9)),
    Case("aged: from after the end", _of("aged", 40, **HASTY), "aged-0 ends at 30, before"),
    Case(
        "aged: from after the end, lenient", _of("aged", 40, **LENIENT, **HASTY), "aged-0 ends at 30, before"
    ),
    Case("aged: from after the end to further", _of("aged", 40, 50, **HASTY), "aged-0"),
    Case("aged: from after the end to further, lenient", _of("aged", 40, 50, **LENIENT, **HASTY)),
    Case("aged: from the middle to after the end", _of("aged", 20, 50, **HASTY), "aged-0"),
    Case("aged: from the middle to after the end, lenient", _of("aged", 20, 50, **LENIENT, **HASTY)),
    Case("aged: to before the beginning", _of("aged", None, 5, **HASTY), "aged-0 ends at 5, before"),
    Case(
        "aged: to before the beginning, lenient",
        _of("aged", None, 5, **LENIENT, **HASTY),
        "aged-0 ends at 5, before",
    ),
    # Transactions
    Case("payments: everything", _of("payments")),
    Case("payments: uncommitted", _of("payments", **{"kafka.isolation.level": "read_uncommitted"})),
    Case("payments: committed", _of("payments", **COMMITTED)),
    Case("payments: committed, between offsets", _of("payments", 1, 8, **COMMITTED)),
    Case("payments: committed, all aborted", _of("payments", 3, 6, **COMMITTED)),
    Case("payments: the same, uncommitted", _of("payments", 3, 6)),
    Case("payments: committed, split", _of("payments", **COMMITTED, minPartitions="7")),
    Case("payments: committed, in small tasks", _of("payments", **COMMITTED, maxRecordsPerPartition="2")),
    Case("payments: split to single offsets", _of("payments", minPartitions="32")),
    Case(
        "payments: committed, into the open one", _of("payments", 0, 31, **COMMITTED, **HASTY), "payments-0"
    ),
    Case(
        "payments: committed, from within the open one",
        _of("payments", 31, **COMMITTED, **HASTY),
        "payments-0",
    ),
    Case("payments: the open one, uncommitted", _of("payments", 30)),
    # Gaps, codecs, times, bytes
    Case("compacted: everything", {"subscribe": "compacted", "includeHeaders": "true"}),
    Case("compacted: from gap to gap", _of("compacted", 9, 23)),
    Case("compacted: nothing but a gap", _of("compacted", 9, 12)),
    Case("compacted: split", _of("compacted", minPartitions="6")),
    Case("sparse: everything", {"subscribe": "sparse"}),
    Case("packed: everything", {"subscribe": "packed", "includeHeaders": "true"}),
    Case(
        "packed: from within the batches",
        {
            "subscribe": "packed",
            "startingOffsets": at("packed", 7, 8, 9, 10, 11),
            "endingOffsets": at("packed", 33, 34, 35, 36, 37),
            "includeHeaders": "true",
        },
    ),
    Case(
        "packed: small answers, split",
        {
            "subscribe": "packed",
            "kafka.max.partition.fetch.bytes": "100",
            "minPartitions": "12",
        },
    ),
    Case("stamped: everything", {"subscribe": "stamped"}),
    Case("odd: everything", {"subscribe": "odd", "includeHeaders": "true"}),
)

SHARES: Final = (
    Case("fewer tasks than partitions", {"minPartitions": "2"}, tasks=True),
    Case("more tasks", {"minPartitions": "9"}, tasks=True),
    Case(
        "five tasks",
        {
            "minPartitions": "5",
            "startingOffsets": orders(0, 0, 0),
            "endingOffsets": orders(60, 25, 3),
        },
        tasks=True,
    ),
    Case("forty tasks", {"minPartitions": "40"}, tasks=True),
    Case("more tasks than records", {"minPartitions": "15", "subscribe": "orders-bills"}, tasks=True),
    Case(
        "small tasks between offsets",
        {
            "maxRecordsPerPartition": "20",
            "startingOffsets": orders(0, 0, 0),
            "endingOffsets": orders(60, 25, 3),
        },
        tasks=True,
    ),
    Case(
        "small tasks of which more are asked for",
        {
            "maxRecordsPerPartition": "30",
            "minPartitions": "8",
            "startingOffsets": orders(0, 0, 0),
            "endingOffsets": orders(60, 25, 3),
        },
        tasks=True,
    ),
    Case(
        "tasks that are large enough",
        {
            "maxRecordsPerPartition": "1000",
            "startingOffsets": orders(0, 0, 0),
            "endingOffsets": orders(60, 25, 3),
        },
        tasks=True,
    ),
    Case("small tasks without offsets", {"maxRecordsPerPartition": "20"}, tasks=True),
    Case("no tasks", {"minPartitions": "0"}, "is not between"),
    Case("tasks as a word", {"minPartitions": "many"}, "is no whole number"),
    Case("too many tasks", {"minPartitions": "2147483648"}, "is not between"),
    Case("number with spaces around", {"minPartitions": " 9 "}),
    Case("empty tasks", {"maxRecordsPerPartition": "0"}, "is not between"),
)

OTHERS: Final = (
    Case("headers", {"includeHeaders": "true"}),
    Case("no headers", {"includeHeaders": "FALSE"}),
    Case("headers perhaps", {"includeHeaders": "perhaps"}, "neither true nor false"),
    Case("headers with spaces around", {"includeHeaders": " true "}),
    Case(
        "names in any case", {"INCLUDEHEADERS": "true", "StartingTimestamp": ms(2), "kafka.Client.ID": "shop"}
    ),
    Case("prefix of groups", {"groupIdPrefix": "shop"}),
    Case("group", {"kafka.group.id": "reader"}),
    Case("group and prefix", {"kafka.group.id": "reader", "groupIdPrefix": "shop"}),
    Case(
        "retries and patience",
        {
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "7",
            "kafkaConsumer.pollTimeoutMs": "60000",
        },
    ),
    Case("no tries", {"fetchOffset.numRetries": "0"}, "is not between"),
    Case("a pause of less than nothing", {"fetchOffset.retryIntervalMs": "-5"}, "is not between"),
    Case("patience as a word", {"kafkaConsumer.pollTimeoutMs": "long"}, "is no whole number"),
    Case("loss that is none", {"failOnDataLoss": "true"}),
    Case("loss perhaps", {"failOnDataLoss": "perhaps"}, "neither true nor false"),
    Case(
        "limits of streams",
        {
            "maxOffsetsPerTrigger": "5",
            "minOffsetsPerTrigger": "2",
            "maxTriggerDelay": "1s",
        },
    ),
    Case(
        "limits of streams that exclude each other",
        {"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"},
        "is more than maxOffsetsPerTrigger",
    ),
    Case("limit of streams as a word", {"maxOffsetsPerTrigger": "many"}, "is no whole number"),
    Case("delay of streams as a word", {"maxTriggerDelay": "a fortnight"}, "is no time"),
    Case("misspelled option", {"startingOffset": "latest"}, "did you mean startingOffsets?"),
    Case("misspelled setting", {"kafka.fetch.maxbytes": "1"}, "did you mean kafka.fetch.max.bytes?"),
    Case("setting of a producer", {"kafka.linger.ms": "5"}, "no such consumer setting"),
    Case("settings of the client", {"kafka.max.partition.fetch.bytes": "100", "kafka.client.id": "shop"}),
    Case(
        "more settings of the client",
        {
            "kafka.fetch.min.bytes": "1000",
            "kafka.fetch.max.wait.ms": "50",
            "kafka.max.poll.records": "7",
            "kafka.check.crcs": "false",
            "kafka.receive.buffer.bytes": "65536",
            "kafka.client.rack": "r1",
        },
    ),
    Case("option of ours", {"fetchesInFlight": "3", "kafka.max.partition.fetch.bytes": "100"}),
    Case("level of isolation that is none", {"kafka.isolation.level": "read_everything"}, "isolation.level"),
    Case("level of isolation in capitals", {"kafka.isolation.level": "READ_COMMITTED"}, "isolation.level"),
    Case("setting as a word", {"kafka.fetch.min.bytes": "few"}, "fetch.min.bytes"),
    Case("auto.offset.reset", {"kafka.auto.offset.reset": "earliest"}, "starts where startingOffsets says"),
    Case("key.deserializer", {"kafka.key.deserializer": "Bytes"}, "keys and values are bytes"),
    Case("value.deserializer", {"kafka.value.deserializer": "Bytes"}, "keys and values are bytes"),
    Case("enable.auto.commit", {"kafka.enable.auto.commit": "true"}, "commits its own progress"),
    Case("interceptor.classes", {"kafka.interceptor.classes": "Spy"}, "interceptors"),
    Case("metric.reporters", {"kafka.metric.reporters": ""}, "no metrics reporters"),
    Case("settings of TLS without TLS", {"kafka.ssl.truststore.location": "/nowhere"}, "TLS and SASL"),
    Case("empty brokers", {"kafka.bootstrap.servers": ""}, "names no broker"),
    Case("brokers without a port", {"kafka.bootstrap.servers": "localhost"}, "must be HOST:PORT"),
    Case("no brokers", {"subscribe": "orders"}, "bootstrap.servers: it must be given", bare=True),
    Case("no topics", {"kafka.bootstrap.servers": "localhost:1"}, "none of them is given", bare=True),
    Case("no options", {}, "bootstrap.servers: it must be given", bare=True),
)

CASES: Final = (*TOPICS, *STARTS, *START_TIMES, *ENDS, *LOGS, *SHARES, *OTHERS)
