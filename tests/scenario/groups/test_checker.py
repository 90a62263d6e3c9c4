"""The checker of group runs finds what is wrong with journals that are wrong, and nothing in good ones."""

from collections.abc import Iterable

import pytest

from support.group_runs.checker import Session, faults
from support.group_runs.journal import Event, parse
from support.group_runs.tenures import Life, moves

MS = 1000
SESSION = Session(timeout_us=3000 * MS, heartbeat_us=500 * MS)


def life(name: str, *lines: str, killed_ms: int | None = None, instance: str | None = None) -> Life:
    """A journal whose times are milliseconds."""
    events = tuple(_event(line) for line in lines)
    return Life(name, events, instance, None if killed_ms is None else killed_ms * MS)


def _event(line: str) -> Event:
    at, _, rest = line.partition(" ")
    return parse(f"{int(at) * MS} {rest}")


def check(lives: Iterable[Life], acknowledged: int = 10) -> list[str]:
    return faults(list(lives), acknowledged={0: acknowledged}, session=SESSION)


def handed_over(*lines: str) -> list[Life]:
    """`a` reads six records, commits them and lets go; `b` does what the lines say."""
    first = life("a", "0 assigned 0", "5 read 0 0 5", "6 committing 0:6", "7 committed 0:6", "9 revoked 0")
    return [first, life("b", *lines)]


def killed_one(*lines: str, instance: str | None = None) -> list[Life]:
    """`a` is killed at 1,000 ms with offsets 4 and 5 read and not committed."""
    first = ("0 assigned 0", "5 read 0 0 3", "6 committing 0:4", "7 committed 0:4", "8 read 0 4 5")
    return [life("a", *first, killed_ms=1000, instance=instance), life("b", *lines, instance=instance)]


def test_a_clean_hand_over_has_no_faults() -> None:
    assert check(handed_over("10 assigned 0", "12 read 0 6 9")) == []


def test_an_unread_record_is_a_fault() -> None:
    assert check(handed_over("10 assigned 0", "12 read 0 6 8")) == [
        "partition 0: offsets 9 to 9 were read by nobody"
    ]


def test_a_gap_in_the_middle_is_a_fault() -> None:
    [gap, start] = check(handed_over("10 assigned 0", "12 read 0 8 9"))

    assert gap == "partition 0: offsets 6 to 7 were read by nobody"
    assert start == "partition 0: b began at offset 8, and 6 was committed"


def test_a_partition_without_any_owner_is_a_fault() -> None:
    assert check([]) == ["partition 0: offsets 0 to 9 were read by nobody"]


def test_two_owners_at_once_are_a_fault() -> None:
    assert check(handed_over("8 assigned 0", "12 read 0 6 9")) == [
        "partition 0 was given to b 1.0 ms before a was through (revoked)"
    ]


def test_an_owner_without_a_revocation_overlaps_with_all_later_owners() -> None:
    keeper = life("a", "0 assigned 0", "5 read 0 0 9")
    passing = [life("b", "10 assigned 0", "20 revoked 0"), life("c", "30 assigned 0")]

    found = check([keeper, *passing])

    assert [fault for fault in found if "was given to b" in fault]
    assert [fault for fault in found if "was given to c" in fault]


def test_a_killed_member_keeps_its_partitions_until_its_session_is_over() -> None:
    early, late = ("1500 assigned 0", "1600 read 0 4 9"), ("3500 assigned 0", "3600 read 0 4 9")

    assert check(killed_one(*late)) == []
    assert check(killed_one(*early)) == ["partition 0 was given to b 1500.0 ms before a was through (killed)"]


def test_a_killed_static_member_gets_its_partitions_back_at_once() -> None:
    assert check(killed_one("1500 assigned 0", "1600 read 0 4 9", instance="one")) == []


def test_a_returning_static_member_gives_up_its_partitions_like_any_other() -> None:
    restarted = killed_one("1500 assigned 0", "1600 committed 0:4", "1700 revoked 0", instance="one")
    other = life("c", "1701 assigned 0", "1702 read 0 4 9")

    assert check([*restarted, other]) == []


def test_after_a_crash_records_are_read_again_from_the_last_commit_only() -> None:
    assert check(killed_one("3500 assigned 0", "3600 read 0 3 9")) == [
        "partition 0: b began at offset 3, and 4 was committed"
    ]


def test_a_commit_without_a_response_may_have_succeeded() -> None:
    before = life("a", "0 assigned 0", "5 read 0 0 5", "6 committing 0:6", killed_ms=1000)

    assert check([before, life("b", "3500 assigned 0", "3600 read 0 6 9")]) == []
    assert check([before, life("b", "3500 assigned 0", "3600 read 0 0 9")]) == []
    assert check([before, life("b", "3500 assigned 0", "3600 read 0 5 9")]) == [
        "partition 0: b began at offset 5, and 0 was committed"
    ]


def test_rereading_records_after_a_clean_revocation_is_a_fault() -> None:
    careless = life("a", "0 assigned 0", "5 read 0 0 5", "9 revoked 0")

    assert check([careless, life("b", "10 assigned 0", "12 read 0 0 9")]) == [
        "partition 0: b read offsets 0 to 5 again, although a gave them up cleanly (revoked)"
    ]


def test_records_of_a_lost_partition_may_be_read_again() -> None:
    loser = life("a", "0 assigned 0", "5 read 0 0 5", "9 lost 0")

    assert check([loser, life("b", "10 assigned 0", "12 read 0 0 9")]) == []


def test_a_committed_offset_that_goes_back_is_a_fault() -> None:
    found = check(handed_over("10 assigned 0", "12 read 0 6 9", "13 committing 0:5", "14 committed 0:5"))

    assert found == ["partition 0: offset 5 was committed after 6"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (("1 read 0 0 9",), "a read offset 0 of partition 0, which it did not have"),
        (
            ("0 assigned 0", "1 read 0 0 9", "2 revoked 0", "3 read 0 10 10"),
            "a read offset 10 of partition 0",
        ),
        (("0 assigned 0", "1 read 0 0 5", "2 read 0 4 9"), "a read offset 4 of partition 0 after 5"),
        (("0 assigned 0", "1 assigned 0", "2 read 0 0 9"), "a was given partition 0 twice"),
        (
            ("0 assigned 0", "1 read 0 0 9", "2 left", "3 revoked 0"),
            "a let go of partition 0, which it did not",
        ),
        (("0 assigned 0", "1 read 0 0 9", "2 wrong offset 3: b'x'"), "a read a wrong record: offset 3: b'x'"),
    ],
)
def test_a_contradictory_journal_is_a_fault(lines: tuple[str, ...], fault: str) -> None:
    assert any(found.startswith(fault) for found in check([life("a", *lines)]))


def test_moves_are_the_assignments_and_revocations_of_an_interval() -> None:
    lives = [life("a", "0 assigned 0", "5 read 0 0 9", "10 revoked 0", "20 assigned 0")]

    assert list(moves(lives, from_us=5 * MS, to_us=15 * MS)) == ["a: revoked [0] after 5 ms"]
