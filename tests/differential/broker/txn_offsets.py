"""Offsets that are committed in a transaction: TxnOffsetCommit, and what OffsetFetch says meanwhile."""

from typing import Any

from differential.broker.consumer_requests import AT_ONCE, IN_ORDER, Consumer, create
from differential.broker.group_requests import Member, alone, describe
from differential.broker.group_requests import ready as groups_ready
from differential.broker.offset_requests import commit, fetch_offsets
from differential.broker.sending import fetch
from differential.broker.talk import Family, Talk
from differential.broker.txn_requests import (
    OFFSETS_TOPIC,
    ONE_REPLICA,
    Producer,
    add_offsets,
    commit_offsets,
    ready,
    started,
)

TXN_OFFSETS = Family(
    "txn-offsets",
    settings={**ONE_REPLICA, **AT_ONCE},
    settings_of_kafka=IN_ORDER,
)
EVERY = range(6)


def joins(talk: Talk, step: str, producer: Producer, group: str) -> None:
    """As clients of the first version of transactions do."""
    talk.ask(step, add_offsets(producer.name, *producer.pair, group))


def both_levels(talk: Talk, step: str, group: str) -> None:
    talk.ask(step, fetch_offsets(group), 9)
    talk.ask(f"{step}, stable", fetch_offsets(group, stable=True), 9)


@TXN_OFFSETS.story
def without_members(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("consumed", 3)
    for version in EVERY:
        group = f"simple-{version}"
        producer = started(talk, f"comes v{version}", f"simple-{version}")

        def asked(step: str, *args: Any, version: int = version, **more: Any) -> None:
            talk.ask(f"{step} v{version}", commit_offsets(*args, **more), version)

        if version < 5:
            asked("not added", producer.name, producer.pair, group, "consumed", 3)
            joins(talk, f"adds v{version}", producer, group)
        asked("committed", producer.name, producer.pair, group, "consumed", 4, 0, 2, note="n")
        producer.describe(f"described v{version}")
        both_levels(talk, f"fetched meanwhile v{version}", group)
        talk.ask(
            f"one partition, stable v{version}", fetch_offsets(group, {"consumed": (0, 1)}, stable=True), 9
        )
        talk.ask(f"the group v{version}", describe(group))
        asked("committed again", producer.name, producer.pair, group, "consumed", 5, 0)
        talk.ask(f"committed beside it v{version}", commit(group, "consumed", 77, 1), 9)
        producer.ended(f"commits v{version}", commit=True)
        both_levels(talk, f"fetched v{version}", group)
        if version < 5:
            joins(talk, f"adds more v{version}", producer, group)
        asked("committed to be aborted", producer.name, producer.pair, group, "consumed", 9, 0, 1)
        both_levels(talk, f"fetched meanwhile again v{version}", group)
        producer.ended(f"aborts v{version}", commit=False)
        both_levels(talk, f"fetched at last v{version}", group)
        asked("after the end", producer.name, producer.pair, f"other-{group}", "consumed", 10)


@TXN_OFFSETS.story
def wrong_producers(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("wrong")
    for version in EVERY:
        group = f"wrong-{version}"
        producer = started(talk, f"comes v{version}", f"wrong-{version}")
        producer.init(f"comes again v{version}")
        name, (pid, epoch) = producer.name, producer.pair

        def asked(
            step: str, name: str, producer_id: int, epoch: int, group: str = group, version: int = version
        ) -> None:
            request = commit_offsets(name, (producer_id, epoch), group, "wrong", 3)
            talk.ask(f"{step} v{version}", request, version)

        for state in ("before", "within"):
            asked(f"unknown transactional id, {state}", "nobody", pid, epoch)
            asked(f"empty transactional id, {state}", "", pid, epoch)
            asked(f"another producer id, {state}", name, pid + 9_000, epoch)
            asked(f"negative producer id, {state}", name, -1, epoch)
            asked(f"earlier epoch, {state}", name, pid, epoch - 1)
            asked(f"later epoch, {state}", name, pid, epoch + 1)
            asked(f"negative epoch, {state}", name, pid, -1)
            asked(f"no group, {state}", name, pid, epoch, "")
            if state == "before":
                joins(talk, f"adds v{version}", producer, group)
                asked("good", name, pid, epoch)
        producer.ended(f"aborts v{version}", commit=False)
        asked("after the end", name, pid, epoch)
        both_levels(talk, f"nothing v{version}", group)


@TXN_OFFSETS.story
def what_is_committed(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("values", 2)
    for version in EVERY:
        group = f"values-{version}"
        producer = started(talk, f"comes v{version}", f"values-{version}")
        joins(talk, f"adds v{version}", producer, group)

        def asked(
            step: str, topic: str, *args: int, group: str = group, version: int = version, **more: Any
        ) -> None:
            request = commit_offsets(f"values-{version}", producer.pair, group, topic, *args, **more)  # noqa: B023
            talk.ask(f"{step} v{version}", request, version)

        asked("unknown topic", "nobody-made-this")
        asked("unknown partition", "values", 1, 2)
        asked("negative partition", "values", 1, -1)
        asked("a known and an unknown one", "values", 1, 0, 2)
        asked("an empty name", "")
        asked("the offsets topic", OFFSETS_TOPIC)
        asked("negative offset", "values", -1)
        asked("a long note", "values", 1, note="x" * 4096)
        asked("a note too long", "values", 2, note="x" * 4097)
        asked("no note", "values", 3, 1, note=None)
        asked("a partition twice", "values", 4, 0, 0)
        request = commit_offsets(producer.name, producer.pair, group, "values")
        request.topics = []
        talk.ask(f"no topics v{version}", request, version)
        both_levels(talk, f"meanwhile v{version}", group)
        producer.ended(f"commits v{version}", commit=True)
        both_levels(talk, f"fetched v{version}", group)


@TXN_OFFSETS.story
def of_classic_members(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    talk.create("classic")
    for version in (3, 4, 5):
        group = f"classic-{version}"
        producer = started(talk, f"comes v{version}", f"classic-{version}")
        joins(talk, f"adds v{version}", producer, group)

        def asked(step: str, group: str = group, version: int = version, **member: Any) -> None:
            request = commit_offsets(f"classic-{version}", producer.pair, group, "classic", 5, **member)  # noqa: B023
            talk.ask(f"{step} v{version}", request, version)

        asked("a member of no group", member_id="m", generation=1)
        asked("a generation of no group", generation=0)
        member = alone(talk, f"member v{version}", group)
        asked("its own", member_id=member.id, generation=1)
        asked("wrong generation", member_id=member.id, generation=2)
        asked("negative generation", member_id=member.id, generation=-1)
        asked("unknown member", member_id="somebody", generation=1)
        asked("no member", generation=1)
        asked("nobody at all")
        asked("unknown instance", member_id=member.id, generation=1, instance_id="one")
        second = Member(talk, group)
        second.take_id(f"second v{version}")
        aside = talk.aside(f"second joins v{version}", second.join_request(), 9)
        member.hears(27)
        asked("during a rebalance", member_id=member.id, generation=1)
        member.join(f"joins again v{version}")
        second.joined(aside.come())
        asked("before it syncs", member_id=member.id, generation=2)
        asked("the old generation", member_id=member.id, generation=1)
        member.leave(f"leaves v{version}")
        second.leave(f"second leaves v{version}")
        asked("after it left", member_id=member.id, generation=2)
        producer.ended(f"commits v{version}", commit=True)
        both_levels(talk, f"fetched v{version}", group)
        static = alone(talk, f"static v{version}", f"static-{group}", instance_id="one")
        asked("an instance", f"static-{group}", member_id=static.id, generation=1, instance_id="one")
        asked("a fenced instance", f"static-{group}", member_id="other", generation=1, instance_id="one")
        producer.ended(f"aborts v{version}", commit=False)


@TXN_OFFSETS.story
def of_consumers(talk: Talk) -> None:
    ready(talk)
    groups_ready(talk)
    create(talk, "modern")
    for version in (3, 4, 5):
        group = f"modern-{version}"
        producer = started(talk, f"comes v{version}", f"modern-{version}")
        joins(talk, f"adds v{version}", producer, group)
        consumer = Consumer(talk, group, "m1")
        consumer.join(f"joins v{version}", "modern")
        consumer.beat(f"has it v{version}")

        def asked(step: str, group: str = group, version: int = version, **member: Any) -> None:
            request = commit_offsets(f"modern-{version}", producer.pair, group, "modern", 5, **member)  # noqa: B023
            talk.ask(f"{step} v{version}", request, version)

        asked("its own", member_id="m1", generation=consumer.epoch)
        asked("earlier epoch", member_id="m1", generation=consumer.epoch - 1)
        asked("later epoch", member_id="m1", generation=consumer.epoch + 1)
        asked("negative epoch", member_id="m1", generation=-1)
        asked("unknown member", member_id="m2", generation=consumer.epoch)
        asked("nobody at all")
        asked("an instance", member_id="m1", generation=consumer.epoch, instance_id="one")
        consumer.leave(f"leaves v{version}")
        asked("after it left", member_id="m1", generation=consumer.epoch)
        asked("nobody, when it is empty")
        producer.ended(f"commits v{version}", commit=True)
        both_levels(talk, f"fetched v{version}", group)


@TXN_OFFSETS.story
def in_the_log(talk: Talk) -> None:
    """What a fetch of the offsets topic says: transactional batches, and markers after them."""
    ready(talk)
    groups_ready(talk)
    talk.create("logged")
    producer = started(talk, "comes", "logged")
    start = talk.quietly(fetch(OFFSETS_TOPIC), 12).responses[0].partitions[0].high_watermark
    talk.ask("committed", commit_offsets(producer.name, producer.pair, "logged", "logged", 3))
    told = talk.quietly(fetch(OFFSETS_TOPIC, start), 12).responses[0].partitions[0]
    talk.keep("last stable, from there", told.last_stable_offset - start)
    talk.keep("high watermark, from there", told.high_watermark - start)
    producer.ended("aborts", commit=False)
    told = talk.quietly(fetch(OFFSETS_TOPIC, start, isolation_level=1), 12).responses[0].partitions[0]
    talk.keep("last stable after it", told.last_stable_offset - start)
    talk.keep("high watermark after it", told.high_watermark - start)
    talk.keep("aborted", [one.first_offset - start for one in told.aborted_transactions or ()])
