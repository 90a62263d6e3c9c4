"""Changes of topics since a query's last micro-batch."""

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.spark.planning.changes import Absences, TopicIds, apart, resume

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
OTHER = TopicPartition("bills", 0)
FIRST, SECOND, THIRD = (Uuid(bytes([number] * 16)) for number in (1, 2, 3))


def test_a_query_continues_at_its_offsets() -> None:
    assert resume({A: 5, B: 0}, {A: 0, B: 0}, {A: 9, B: 0}) == ({A: 5, B: 0}, [])
    assert resume({A: 5}, {A: 5}, {A: 5}) == ({A: 5}, [])


def test_a_new_partition_is_read_from_its_beginning() -> None:
    assert resume({A: 5}, {A: 0, B: 0}, {A: 9, B: 4}) == ({A: 5, B: 0}, [])


def test_deleted_records_of_a_new_partition_are_data_loss() -> None:
    start, [loss] = resume({}, {A: 3}, {A: 9})

    assert start == {A: 3}
    assert "new" in loss
    assert "3 offsets are lost" in loss


def test_deleted_unread_offsets_are_data_loss() -> None:
    start, [loss] = resume({A: 5}, {A: 7}, {A: 9})

    assert start == {A: 7}
    assert "2 offsets are lost" in loss


def test_a_partition_that_ends_before_the_query_was_recreated_or_truncated() -> None:
    start, [loss] = resume({A: 5}, {A: 0}, {A: 4})

    assert start == {A: 0}
    assert "recreated or truncated" in loss


def test_a_deleted_partition_is_dropped() -> None:
    start, [loss] = resume({A: 5, B: 7}, {A: 0}, {A: 9})

    assert start == {A: 5}
    assert "orders-1 no longer exists" in loss


def test_a_recreated_topic_is_read_from_its_beginning() -> None:
    ends = {A: 9, B: 9, OTHER: 9}

    start, losses = resume({A: 5, OTHER: 5}, {A: 2, B: 0, OTHER: 0}, ends, remade={"orders"})

    assert start == {A: 2, B: 0, OTHER: 5}
    assert losses == ["orders-0 was read up to offset 5, but the topic was recreated and has offsets 2 to 9"]


def test_a_topic_is_recreated_until_a_batch_was_planned_with_its_new_id() -> None:
    topics = TopicIds()
    topics.note({"orders": FIRST})

    assert topics.remade({A: 5}, {"orders": FIRST}) == set()
    assert topics.remade({A: 9}, {"orders": SECOND}) == {"orders"}
    # No batch was run from there yet.
    assert topics.remade({A: 9}, {"orders": SECOND}) == {"orders"}
    assert topics.remade({A: 4}, {"orders": SECOND}) == set()
    assert topics.remade({A: 4}, {"orders": THIRD}) == {"orders"}


def test_new_topics_are_not_recreated_ones() -> None:
    topics = TopicIds()

    assert topics.remade({A: 5}, {"orders": FIRST}) == set()
    assert topics.remade({A: 5}, {"orders": FIRST, "bills": SECOND}) == set()
    assert topics.remade({A: 6, OTHER: 1}, {"orders": FIRST, "bills": SECOND}) == set()
    assert topics.remade({A: 6, OTHER: 1}, {"orders": FIRST, "bills": THIRD}) == {"bills"}


def test_a_batch_that_restarts_does_not_end_at_the_previous_end() -> None:
    # Spark would not run such a micro-batch.
    assert apart({A: 5, B: 7}, {A: 5, B: 0}, {A: 5, B: 7}) == {A: 5, B: 6}
    assert apart({A: 5, B: 7}, {A: 5, B: 0}, {A: 6, B: 7}) == {A: 6, B: 7}
    assert apart({A: 5, B: 7}, {A: 5, B: 7}, {A: 5, B: 7}) == {A: 5, B: 7}


def test_absent_partitions_are_reported_once() -> None:
    absences = Absences()
    at = {A: 5, OTHER: 3}

    assert absences.note(at, {A}, {"orders": FIRST}) == {A}
    assert absences.note({A: 0, OTHER: 3}, {A}, {}) == set()
    assert absences.note({A: 0, OTHER: 3}, {A, OTHER}, {"bills": SECOND}) == {OTHER}


def test_a_topic_that_comes_back_with_its_id_is_continued() -> None:
    absences = Absences()
    absences.note({A: 5, OTHER: 3}, {A}, {"orders": FIRST})
    at = {A: 0, OTHER: 3}

    assert absences.returned(at, {A}, {}) == at
    assert absences.returned(at, (), {"orders": FIRST}) == {A: 5, OTHER: 3}
    # No batch was run from there yet.
    assert absences.returned(at, (), {"orders": FIRST}) == {A: 5, OTHER: 3}
    assert absences.returned({A: 7, OTHER: 3}, (), {"orders": FIRST}) == {A: 7, OTHER: 3}
    assert absences.note({A: 7, OTHER: 3}, {A}, {"orders": FIRST}) == {A}


def test_a_topic_that_comes_back_with_another_id_is_not_continued() -> None:
    absences = Absences()
    absences.note({A: 5}, {A}, {"orders": FIRST})

    assert absences.returned({A: 0}, (), {"orders": SECOND}) == {A: 0}
    assert absences.returned({A: 0}, (), {"orders": FIRST}) == {A: 0}


def test_without_ids_a_topic_that_comes_back_is_not_continued() -> None:
    absences = Absences()
    absences.note({A: 5}, {A}, {})

    assert absences.returned({A: 0}, (), {"orders": FIRST}) == {A: 0}
