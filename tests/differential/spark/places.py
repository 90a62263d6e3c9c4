"""Cases about where a batch query starts and ends: offsets, times, and what does not go together."""

from typing import Final

from differential.spark.case import COMMITTED, HASTY, LATEST, LENIENT, Case, at, ms, orders

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
    Case("start at a word", {"startingOffsets": "newest"}, "'newest' is not one of"),
    Case("start at nothing", {"startingOffsets": ""}, "is not one of"),
    Case("start without a partition", {"startingOffsets": orders(0, 0)}, "orders-2 is missing"),
    Case(
        "start with a partition too many", {"startingOffsets": orders(0, 0, 0, 0)}, "orders-3 is not one of"
    ),
    Case("start of another topic", {"startingOffsets": at("orders-bills", 0)}, "orders-0 is missing"),
    Case("start with no partitions", {"startingOffsets": "{}"}, "names no partition"),
    Case("start at text", {"startingOffsets": orders(0, '"x"', 0)}, "which is not a valid offset"),
    Case(
        "start at a number as text", {"startingOffsets": orders(50, '"20"', 0)}, "which is not a valid offset"
    ),
    Case("start at a fraction", {"startingOffsets": orders(50, 20.7, 0)}, "which is not a valid offset"),
    Case("start at null", {"startingOffsets": orders(50, "null", 0)}, "which is not a valid offset"),
    Case("start at -3", {"startingOffsets": orders(50, -3, 0)}, "which is not a valid offset"),
    Case("start twice", {"startingOffsets": '{"orders":{"0":0,"1":0,"2":0,"0":50}}'}, "is named twice"),
    Case(
        "start with text after it", {"startingOffsets": orders(50, 20, 0) + " and so on"}, "is not valid JSON"
    ),
    Case("start after the end", {"startingOffsets": orders(61, 0, 0)}, "orders-0"),
    Case("start after the end, lenient", {"startingOffsets": orders(61, 0, 0), **LENIENT}, "orders-0"),
    Case("start at the offsets of a group", {"startingOffsets": "group", "kafka.group.id": "shop"}),
    Case("start at the offsets of no group", {"startingOffsets": "group"}, "group requires kafka.group.id"),
)

START_TIMES: Final = (
    Case("time", {"startingTimestamp": ms(2)}),
    Case("time with spaces and a sign", {"startingTimestamp": f" +{ms(2)} "}),
    Case("time between records", {"startingTimestamp": ms(1.005)}),
    Case("time before all", {"startingTimestamp": "0"}),
    Case("times", {"startingOffsetsByTimestamp": orders(ms(59), ms(20), ms(0))}),
    Case("time that is too late", {"startingTimestamp": ms(10)}, "orders-2 has no record at or after"),
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
        "orders-2 has no record at or after",
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
        "payments-0 has no record at or after",
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
    Case("time as a word", {"startingTimestamp": "yesterday"}, "is not an integer"),
    Case("time with an underscore", {"startingTimestamp": "1_790_000_002_000"}, "is not an integer"),
    Case("time out of range", {"startingTimestamp": "9223372036854775808"}, "is out of range"),
    Case(
        "times without a partition",
        {"startingOffsetsByTimestamp": orders(ms(0), ms(0))},
        "orders-2 is missing",
    ),
    Case("times that are no JSON", {"startingOffsetsByTimestamp": ms(0)}, "not a JSON object of topics"),
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
    Case("time -3", {"startingTimestamp": "-3"}, "is out of range"),
    Case("time -7", {"startingTimestamp": "-7"}, "is out of range"),
    Case("times -3", {"startingOffsetsByTimestamp": orders(-3, -3, -3)}, "which is not a valid offset"),
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
    Case("ending time -3", {"endingTimestamp": "-3"}, "is out of range"),
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
    Case("end at earliest", {"endingOffsets": "earliest"}, "is not one of"),
    Case(
        "end one partition at earliest",
        {"endingOffsets": orders(1, -2, 1)},
        "orders-1 cannot end at earliest",
    ),
    Case("end without a partition", {"endingOffsets": orders(1, 1)}, "orders-2 is missing"),
    Case("ending time as a word", {"endingTimestamp": "never"}, "is not an integer"),
    Case(
        "ending times without a partition",
        {"endingOffsetsByTimestamp": orders(ms(0), ms(0))},
        "orders-2 is missing",
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
