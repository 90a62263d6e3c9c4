"""Where we answer otherwise than Apache Kafka 4.3.0 on purpose, and why.

A difference that is not in this table fails its story's test, and so does an entry that no longer occurs.
`*` stands for anything. The docs page on compatibility is made from these rows.
"""

import re
from dataclasses import dataclass
from typing import Any

from differential.broker.compare import MISSING, Mismatch
from differential.broker.talk import CLOSED, SILENT

ANYTHING: Any = object()


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One deliberate difference: where it is seen, what the two say, and the reason."""

    story: str
    step: str = "*"
    path: str = "*"
    kafka: Any = ANYTHING
    ours: Any = ANYTHING
    reason: str

    def covers(self, mismatch: Mismatch) -> bool:
        return (
            _fits(self.story, mismatch.story)
            and _fits(self.step, mismatch.step)
            and _fits(self.path, mismatch.path)
            and self.kafka in (ANYTHING, mismatch.kafka)
            and self.ours in (ANYTHING, mismatch.ours)
        )

    def may_be_in(self, story: str) -> bool:
        return _fits(self.story, story)


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


NOT_BUILT = "What is not built yet is not offered: nothing is accepted and then ignored."
SAYS_WHY = "Kafka gives the code alone; we also say what is wrong with the batch."
NOT_OURS_TO_GUESS = "A name that is no UTF-8 cannot be echoed, so the request is malformed."
STATIC_VOTERS = "The voters of the metadata quorum are set in the configuration (kraft.version 0)."
NAMED = "Kafka's own code fails on it, hence its UNKNOWN_SERVER_ERROR; we name what the client did wrong."

OPAQUE = "Compressed records are not unpacked by the broker: it checks the header and the CRC."
STRICT = "What only a broker may write into a header is refused, where Kafka stores it or clears it."
BOTH_COUNT = "Kafka drops one of two batches for one partition without a word; we append both."
NOBODYS = "No producer has a negative id: Kafka writes such batches and markers, we refuse them."
NO_SILENCE = "Kafka's answer never comes: it waits for more results than there will be. We answer."
WHOLE_RANGE = "Kafka's fetch ends with the segment; ours goes on into the next one."

DIFFERENCES: tuple[Difference, ...] = (
    *(
        Difference(story="produce/every_codec", step=f"not codec {one}", reason=OPAQUE)
        for one in (1, 2, 3, 4)
    ),
    *(
        Difference(story="produce/every_codec", step=f"not codec {one}", kafka=-1, ours=76, reason=NAMED)
        for one in (5, 6, 7)
    ),
    Difference(story="produce/wrong_places", step="a partition twice*", reason=BOTH_COUNT),
    Difference(story="produce/wrong_places", step="the end", reason=BOTH_COUNT),
    Difference(story="refused-records/headers_that_lie", step="unknown attributes*", reason=STRICT),
    Difference(story="refused-records/headers_that_lie", step="a delete horizon*", reason=STRICT),
    Difference(story="refused-records/headers_that_lie", step="append time from a client*", reason=STRICT),
    Difference(story="producers/unknown_producers", step="no epoch*", reason=STRICT),
    Difference(
        story="refused-records/times_out_of_bounds",
        step="read back",
        path="*.records.batches[2]",
        kafka=MISSING,
        reason=WHOLE_RANGE,
    ),
    Difference(story="refused-records/compressed_records_that_are_wrong", step="packed, *", reason=OPAQUE),
    Difference(story="cluster/api_versions", path="apiKeys[*]", ours=MISSING, reason=NOT_BUILT),
    Difference(
        story="cluster/api_versions",
        path="supportedFeatures[kraft.version].maxVersion",
        kafka=1,
        ours=0,
        reason=STATIC_VOTERS,
    ),
    Difference(story="admin/update_features", step="kraft.version, validated*", reason=STATIC_VOTERS),
    Difference(story="produce/*", path="*errorMessage", kafka=None, reason=SAYS_WHY),
    Difference(story="refused-records/*", path="*errorMessage", kafka=None, reason=SAYS_WHY),
    Difference(story="producers/*", path="*errorMessage", kafka=None, reason=SAYS_WHY),
    Difference(
        story="config-changes/change_topics_wrongly",
        step="* operation",
        path="*errorCode",
        kafka=-1,
        ours=42,
        reason=NAMED,
    ),
    Difference(
        story="config-changes/change_topics_wrongly",
        step="* operation",
        path="*errorMessage",
        kafka=None,
        reason=NAMED,
    ),
    Difference(story="config-changes/change_metrics", reason=NOT_BUILT),
    Difference(story="topics/create_with_configs", step="throttled replicas", reason=NOT_BUILT),
    Difference(
        story="config-changes/list_what_was_changed",
        path="configResources[*watch]",
        ours=MISSING,
        reason=NOT_BUILT,
    ),
    Difference(
        story="config*/list_*",
        path="configResources[8 1]",
        ours=MISSING,
        reason="The levels of loggers cannot be changed over the wire.",
    ),
    Difference(
        story="configs/list_config_resources",
        step="type 8",
        path="errorCode",
        kafka=0,
        ours=35,
        reason="The levels of loggers cannot be changed over the wire.",
    ),
    Difference(
        story="config-changes/change_brokers_wrongly",
        step="unknown name, *",
        path="*",
        reason="Kafka keeps names that it does not know, for plugins; we have none, so it is a mistake.",
    ),
    Difference(
        story="config-changes/change_brokers_wrongly",
        step="setting of topics, *",
        path="*",
        reason="Kafka keeps names that it does not know, for plugins; we have none, so it is a mistake.",
    ),
    Difference(
        story="framing/api_versions_of_the_future",
        path="",
        kafka=CLOSED,
        reason="We answer an unknown version whatever its header looks like; Kafka wants one with tags.",
    ),
    Difference(
        story="classic-groups/joins_again",
        step="a follower joins with other topics",
        path="",
        kafka=SILENT,
        reason="Of two joins of one member Kafka answers the last; we also tell the first to join again.",
    ),
    Difference(
        story="group-admin/find_coordinators",
        step="a share group, before it is known v*",
        path="coordinators[*].errorMessage",
        kafka="",
        reason="Kafka gives the code alone; we also say which types there are.",
    ),
    Difference(
        story="consumer-groups/regular_expressions",
        step="joins",
        reason="A regular expression is resolved at once; Kafka's answer comes before it has done so.",
    ),
    Difference(
        story="consumer-groups/offsets",
        step="an epoch without a member",
        path="groups[counts].errorCode",
        kafka=-1,
        ours=25,
        reason=NAMED,
    ),
    *(
        Difference(story=f"{family}/*", path="*errorMessage", kafka=None, reason=SAYS_WHY)
        for family in ("txn-batches", "txn-timeouts", "txn-levels", "txn-unverified")
    ),
    Difference(
        story="txn-restarts/too_late_with_the_last_epochs",
        step="late-*-32766-*",
        reason="A timeout at the last epoch takes no new producer id; who comes next gets it. Kafka's does.",
    ),
    Difference(story="txn-batches/of_no_producer", reason=NOBODYS),
    Difference(
        story="txn-partitions/several_at_once", step="none v*", path="", kafka=SILENT, reason=NO_SILENCE
    ),
    Difference(
        story="txn-partitions/several_at_once",
        step="one twice v*",
        path="resultsByTransaction[*",
        reason="Of two transactions with one id Kafka takes the partitions of the first; we take both.",
    ),
    Difference(
        story="txn-markers/places", step="a partition twice", path="", kafka=SILENT, reason=NO_SILENCE
    ),
    Difference(
        story="txn-markers/of_nobody",
        step="negative id *",
        path="*errorCode",
        kafka=0,
        ours=-1,
        reason=NOBODYS,
    ),
    Difference(story="framing/headers", step="client id that is no UTF-8", reason=NOT_OURS_TO_GUESS),
    Difference(story="framing/bodies", step="a name that is no UTF-8", reason=NOT_OURS_TO_GUESS),
)


def undeclared(mismatches: list[Mismatch]) -> list[Mismatch]:
    """Those that nobody meant."""
    return [each for each in mismatches if not any(row.covers(each) for row in DIFFERENCES)]


_PAGE = """\
# Differences from Kafka

The tests send the same requests to Apache Kafka 4.3.0 and to Barnabas, and compare every field of the
responses: {stories} stories, from [tests/differential/broker](../../tests/differential/broker). This table
lists the differences that remain on purpose. The tests use the same table, and fail for an entry that does
not occur; a test keeps this page current.

| where | what | why |
| --- | --- | --- |
"""


def page(stories: int) -> str:
    """docs/reference/differences.md"""
    rows = [f"| {one.story} | {_what(one)} | {one.reason} |\n" for one in DIFFERENCES]
    return _PAGE.format(stories=stories) + "".join(dict.fromkeys(rows))


def _what(one: Difference) -> str:
    parts = [] if one.step == "*" else [one.step]
    if one.path != "*":
        parts.append(f"`{one.path}`")
    if one.kafka is not ANYTHING:
        parts.append(f"Kafka: `{one.kafka}`")
    if one.ours is not ANYTHING:
        parts.append(f"ours: `{one.ours}`")
    return ", ".join(parts).replace("|", "\\|") or "everything"
