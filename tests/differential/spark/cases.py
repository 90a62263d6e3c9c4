"""Options of batch queries: what spark-sql-kafka does with each set of them is recorded.

The topics are those of topics.py. A case reads all of `orders` unless it chooses something else.
"""

from typing import Final

from differential.spark.case import COMMITTED, HASTY, LENIENT, Case, at, ms, orders, part_of
from differential.spark.places import ENDS, START_TIMES, STARTS

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
    Case(
        "pattern of Java alone",
        {"subscribePattern": r"^orders\p{Punct}\p{Alpha}+$"},
        "is not a valid regular expression",
    ),
    Case("topic of the cluster itself", {"subscribe": "__consumer_offsets"}),
    Case("two choices", {"subscribe": "orders", "assign": '{"orders":[0]}'}, "exactly one of them"),
    Case("topics and a pattern", {"subscribe": "orders", "subscribePattern": "o"}, "exactly one of them"),
    Case("no topic", {"subscribe": " , "}, "names no topic"),
    Case("empty pattern", {"subscribePattern": " "}, "is empty"),
    Case("broken pattern", {"subscribePattern": "orders("}, "is not a valid regular expression"),
    Case("assign without JSON", {"assign": "orders"}, "is not valid JSON"),
    Case("assign without a list", {"assign": '{"orders":0}'}, "expected a list of partitions"),
    Case("assign nothing", {"assign": "{}"}, "names no partition"),
    Case("assign an empty list", {"assign": '{"orders":[]}'}, "expected a list of partitions"),
    Case("assign a partition twice", {"assign": '{"orders":[0,0]}'}, "is named twice"),
    Case(
        "assign a partition that is not there",
        {
            "assign": '{"orders":[0,7]}',
            "kafka.request.timeout.ms": "2000",
            "kafka.default.api.timeout.ms": "2000",
        },
        "orders-7",
    ),
    Case("assign a partition as text", {"assign": '{"orders":["0"]}'}, "not a valid partition of topic"),
    Case("assign a topic that is not there", {"assign": '{"nowhere":[0]}'}, "nowhere"),
    Case("topic that is not there", {"subscribe": "orders,nowhere"}, "nowhere"),
    Case("name that no topic can have", {"subscribe": "no name?"}, "no name?"),
)

LOGS: Final = (
    # What is deleted
    Case("aged: everything", part_of("aged")),
    Case("aged: from earliest to latest", part_of("aged", -2, -1)),
    Case("aged: what is left", part_of("aged", 10, 30)),
    Case("aged: from the beginning", part_of("aged", 0, **HASTY), "now begins at 10"),
    Case("aged: from the beginning, lenient", part_of("aged", 0, **LENIENT, **HASTY)),
    Case("aged: from before to the middle", part_of("aged", 5, 20, **HASTY), "now begins at 10"),
    Case("aged: from before to the middle, lenient", part_of("aged", 5, 20, **LENIENT, **HASTY)),
    Case("aged: all of it gone", part_of("aged", 0, 8, **HASTY), "now begins at 10"),
    Case("aged: all of it gone, lenient", part_of("aged", 0, 8, **LENIENT, **HASTY)),
    Case("aged: nothing of what is gone", part_of("aged", 9, 9)),
    Case("aged: from after the end", part_of("aged", 40, **HASTY), "aged-0 ends at 30, before"),
    Case(
        "aged: from after the end, lenient",
        part_of("aged", 40, **LENIENT, **HASTY),
        "aged-0 ends at 30, before",
    ),
    Case("aged: from after the end to further", part_of("aged", 40, 50, **HASTY), "aged-0"),
    Case("aged: from after the end to further, lenient", part_of("aged", 40, 50, **LENIENT, **HASTY)),
    Case("aged: from the middle to after the end", part_of("aged", 20, 50, **HASTY), "aged-0"),
    Case("aged: from the middle to after the end, lenient", part_of("aged", 20, 50, **LENIENT, **HASTY)),
    Case("aged: to before the beginning", part_of("aged", None, 5, **HASTY), "aged-0 ends at 5, before"),
    Case(
        "aged: to before the beginning, lenient",
        part_of("aged", None, 5, **LENIENT, **HASTY),
        "aged-0 ends at 5, before",
    ),
    # Transactions
    Case("payments: everything", part_of("payments")),
    Case("payments: uncommitted", part_of("payments", **{"kafka.isolation.level": "read_uncommitted"})),
    Case("payments: committed", part_of("payments", **COMMITTED)),
    Case("payments: committed, between offsets", part_of("payments", 1, 8, **COMMITTED)),
    Case("payments: committed, all aborted", part_of("payments", 3, 6, **COMMITTED)),
    Case("payments: the same, uncommitted", part_of("payments", 3, 6)),
    Case("payments: committed, split", part_of("payments", **COMMITTED, minPartitions="7")),
    Case("payments: committed, in small tasks", part_of("payments", **COMMITTED, maxRecordsPerPartition="2")),
    Case("payments: split to single offsets", part_of("payments", minPartitions="32")),
    Case(
        "payments: committed, into the open one",
        part_of("payments", 0, 31, **COMMITTED, **HASTY),
        "payments-0",
    ),
    Case(
        "payments: committed, from within the open one",
        part_of("payments", 31, **COMMITTED, **HASTY),
        "payments-0",
    ),
    Case("payments: the open one, uncommitted", part_of("payments", 30)),
    # Gaps, codecs, times, bytes
    Case("compacted: everything", {"subscribe": "compacted", "includeHeaders": "true"}),
    Case("compacted: from gap to gap", part_of("compacted", 9, 23)),
    Case("compacted: nothing but a gap", part_of("compacted", 9, 12)),
    Case("compacted: split", part_of("compacted", minPartitions="6")),
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
    Case("no tasks", {"minPartitions": "0"}, "is out of range"),
    Case("tasks as a word", {"minPartitions": "many"}, "is not an integer"),
    Case("too many tasks", {"minPartitions": "2147483648"}, "is out of range"),
    Case("number with spaces around", {"minPartitions": " 9 "}),
    Case("empty tasks", {"maxRecordsPerPartition": "0"}, "is out of range"),
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
    Case("no tries", {"fetchOffset.numRetries": "0"}, "is out of range"),
    Case("a pause of less than nothing", {"fetchOffset.retryIntervalMs": "-5"}, "is out of range"),
    Case("patience as a word", {"kafkaConsumer.pollTimeoutMs": "long"}, "is not an integer"),
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
        "exceeds maxOffsetsPerTrigger",
    ),
    Case("limit of streams as a word", {"maxOffsetsPerTrigger": "many"}, "is not an integer"),
    Case("delay of streams as a word", {"maxTriggerDelay": "a fortnight"}, "is not a duration"),
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
    Case("auto.offset.reset", {"kafka.auto.offset.reset": "earliest"}, "starts at startingOffsets"),
    Case("key.deserializer", {"kafka.key.deserializer": "Bytes"}, "keys and values are bytes"),
    Case("value.deserializer", {"kafka.value.deserializer": "Bytes"}, "keys and values are bytes"),
    Case("enable.auto.commit", {"kafka.enable.auto.commit": "true"}, "commits its own progress"),
    Case("interceptor.classes", {"kafka.interceptor.classes": "Spy"}, "interceptors"),
    Case("metric.reporters", {"kafka.metric.reporters": ""}, "metrics reporters are not supported"),
    Case("settings of TLS without TLS", {"kafka.ssl.truststore.location": "/nowhere"}, "TLS and SASL"),
    Case("empty brokers", {"kafka.bootstrap.servers": ""}, "names no broker"),
    Case("brokers without a port", {"kafka.bootstrap.servers": "localhost"}, "must be HOST:PORT"),
    Case("no brokers", {"subscribe": "orders"}, "bootstrap.servers: it is required", bare=True),
    Case("no topics", {"kafka.bootstrap.servers": "localhost:1"}, "none is set", bare=True),
    Case("no options", {}, "bootstrap.servers: it is required", bare=True),
)

CASES: Final = (*TOPICS, *STARTS, *START_TIMES, *ENDS, *LOGS, *SHARES, *OTHERS)
