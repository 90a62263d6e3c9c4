"""Where our source does otherwise than spark-sql-kafka on purpose: the table of docs/guides/spark.md.

Tests hold each entry to what it says, and fail for one that does not occur any more.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

# How names in sink_cases.py begin in the list.
SINK: Final = "sink: "
_HEAD: Final = "| what | spark-sql-kafka | Barnabas | why |\n| --- | --- | --- | --- |\n"


class Difference(NamedTuple):
    """`cases` are names of cases, those of the sink after SINK; `shown_by` is path::function."""

    what: str
    theirs: str
    ours: str
    why: str
    cases: tuple[str, ...] = ()
    shown_by: str = ""

    def row(self) -> str:
        return f"| {self.what} | {self.theirs} | {self.ours} | {self.why} |\n"


DIFFERENCES: Final = (
    Difference(
        "an unknown option, or an unknown `kafka.*` setting",
        "ignored",
        "refused, with the nearest known name",
        "a misspelled option would change nothing, and nobody would notice",
        (
            "misspelled option",
            "misspelled setting",
            "setting of a producer",
            "sink: misspelled option",
            "sink: option of the source",
            "sink: misspelled setting",
            "sink: setting of a consumer",
        ),
    ),
    Difference(
        "a malformed value of an option without effect, such as `maxOffsetsPerTrigger` in a batch query",
        "ignored",
        "refused",
        "it is a mistake, whether it is used or not",
        ("limit of streams as a word", "delay of streams as a word", "a pause of less than nothing"),
    ),
    Difference(
        "spaces around numbers, `true` and `false`",
        "refused",
        "ignored",
        "they have one meaning only",
        ("number with spaces around", "headers with spaces around"),
    ),
    Difference(
        "`assign` names a partition that does not exist, or nothing",
        "read without it",
        "refused",
        "the query would read less than it says",
        ("assign a partition that is not there", "assign nothing", "assign an empty list"),
    ),
    Difference(
        "`assign` names a partition twice",
        "read once",
        "refused",
        "most likely another partition was meant",
        ("assign a partition twice",),
    ),
    Difference(
        "in JSON of offsets: fractions, `null`, a partition twice, text after the JSON",
        "truncated, 0, the last of them, ignored",
        "refused",
        "the query would start elsewhere than it says",
        (
            "start at a fraction",
            "start at null",
            "start twice",
            "start with text after it",
        ),
    ),
    Difference(
        "a time of -3",
        "the record with the latest time",
        "refused",
        "Spark does not document it; what was meant is more likely -2",
        ("time -3", "times -3", "ending time -3"),
    ),
    Difference(
        "`startingOffsets=group`",
        "does not exist",
        "starts where the group has committed",
        "a job can take over from another consumer",
        ("start at the offsets of a group",),
    ),
    Difference(
        "an internal topic, such as `__consumer_offsets`, that is named in `subscribe`",
        "left out",
        "read",
        "it was asked for by name",
        ("topic of the cluster itself",),
    ),
    Difference(
        "`maxRecordsPerPartition` in a batch query without offsets",
        "no effect",
        "splits the tasks",
        "spark-sql-kafka computes sizes before it knows where earliest and latest are",
        ("small tasks without offsets",),
    ),
    Difference(
        "`subscribePattern`",
        "Java's regular expressions",
        "Python's: no `\\p{Alpha}`, no `&&` in sets",
        "the source runs in Python",
        ("pattern of Java alone",),
    ),
    Difference(
        "`kafka.metric.reporters`, `kafka.partitioner.class`, `kafka.ssl.*`, `kafka.sasl.*`",
        "settings of Java's client",
        "refused",
        "our client has no Java classes, no TLS and no SASL",
        (
            "metric.reporters",
            "settings of TLS without TLS",
            "sink: partitioner.class",
            "sink: metric.reporters",
        ),
    ),
    Difference(
        "`kafka.max.in.flight.requests.per.connection` above 5 in the sink",
        "written without idempotence",
        "refused, unless `kafka.enable.idempotence` is `false`",
        "Kafka's clients refuse it since 4.0; spark-sql-kafka 4.2.0 has 3.9",
        ("sink: too many in flight",),
    ),
    Difference(
        "lost offsets in a partition that `minPartitions` splits, with `failOnDataLoss=false`",
        "may fail",
        "skipped by every task",
        "its tasks share a consumer, ours do not",
        shown_by="interop/spark/test_odd_logs_beside.py::test_deleted_records_are_skipped_by_all_tasks_of_a_partition",
    ),
    Difference(
        "a schema of the user (`.schema(...)`)",
        "refused",
        "selects columns",
        "other columns are never built",
        shown_by="interop/spark/test_recorded_answers.py::test_only_ours_takes_a_schema_of_the_user",
    ),
    Difference(
        "`endingTimestamp` in a stream",
        "ignored",
        "refused, as the other two forms of an end are by both",
        "a stream has no end",
        shown_by="interop/spark/test_stream_source_beside.py::test_an_ending_time_is_refused_by_ours_alone",
    ),
    Difference(
        "a topic that was recreated while a stream stood still, with `failOnDataLoss=false`",
        "skipped up to its new end",
        "read from its beginning",
        "the query has read none of its records",
        shown_by="interop/spark/test_stream_source_beside.py"
        "::test_a_topic_made_anew_fails_both_and_only_ours_reads_it_then",
    ),
    Difference(
        '`df.write` without `.mode("append")`',
        "appends",
        "refused",
        "Spark supports `append` and `overwrite` only for sinks in Python",
        shown_by="interop/spark/test_sink_beside.py::test_our_sink_differs_only_as_documented",
    ),
    Difference(
        "output mode `update`",
        "appends",
        "refused",
        "Spark does not support it for sinks in Python",
        shown_by="interop/spark/test_sink_beside.py::test_only_theirs_writes_updates",
    ),
    Difference(
        "a column `headers` whose fields are not named `key` and `value` in lower case",
        "written",
        "refused",
        "the error names the type that is expected",
        ("sink: headers in capitals",),
        shown_by="interop/spark/test_sink_beside.py"
        "::test_only_spark_sql_kafka_accepts_other_names_of_header_fields",
    ),
    Difference(
        "option `includeHeaders` of the sink, neither `true` nor `false`",
        "ignored in batch queries",
        "refused",
        "it is a mistake, although the option has no effect",
        ("sink: includeHeaders=perhaps",),
        shown_by="interop/spark/test_sink_beside.py::test_our_sink_differs_only_as_documented",
    ),
)


def difference_of(case: str) -> Difference | None:
    return next((one for one in DIFFERENCES if case in one.cases), None)


def table(differences: Iterable[Difference]) -> str:
    return _HEAD + "".join(one.row() for one in differences)
