"""New replicas are spread over racks and brokers."""

from collections import Counter
from random import Random

import pytest

from barnabas.controller.decision import Refused
from barnabas.controller.placement import UsableBroker, place
from barnabas.protocol.error_codes import ErrorCode


def brokers(
    *ids: int, fenced: tuple[int, ...] = (), racks: dict[int, str] | None = None
) -> list[UsableBroker]:
    return [UsableBroker(one, (racks or {}).get(one), one in fenced) for one in ids]


SEEDS = range(30)
TOO_FEW = "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered."


@pytest.mark.parametrize("seed", SEEDS)
def test_every_broker_leads_as_often_as_the_others(seed: int) -> None:
    placed = place(brokers(1, 2, 3, 4), partitions=8, replicas=2, rng=Random(seed))

    assert Counter(one[0] for one in placed) == {1: 2, 2: 2, 3: 2, 4: 2}
    assert Counter(broker for one in placed for broker in one) == {1: 4, 2: 4, 3: 4, 4: 4}
    assert all(len(set(one)) == 2 for one in placed)


@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_are_on_different_racks(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}

    placed = place(brokers(*racks, racks=racks), partitions=12, replicas=3, rng=Random(seed))

    assert all({racks[broker] for broker in one} == {"a", "b", "c"} for one in placed)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaders_are_never_fenced_and_fenced_brokers_come_last(seed: int) -> None:
    placed = place(brokers(1, 2, 3, fenced=(2,)), partitions=6, replicas=2, rng=Random(seed))

    assert all(set(one) == {1, 3} for one in placed)
    everywhere = place(brokers(1, 2, 3, fenced=(2,)), partitions=6, replicas=3, rng=Random(seed))
    assert all(one[-1] == 2 for one in everywhere)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rack_of_fenced_brokers_leads_nothing(seed: int) -> None:
    racks = {1: "a", 2: "b"}

    placed = place(brokers(1, 2, fenced=(2,), racks=racks), partitions=3, replicas=2, rng=Random(seed))

    assert placed == [(1, 2)] * 3


def test_one_broker_gets_everything() -> None:
    assert place(brokers(7), partitions=3, replicas=1, rng=Random(0)) == [(7,)] * 3


def test_the_same_dice_place_the_same() -> None:
    def thrown(seed: int) -> list[tuple[int, ...]]:
        return place(brokers(1, 2, 3), partitions=5, replicas=2, rng=Random(seed))

    assert thrown(1) == thrown(1)
    assert len({tuple(thrown(seed)) for seed in SEEDS}) > 1


@pytest.mark.parametrize(
    ("usable", "replicas", "message"),
    [
        (brokers(1), 2, TOO_FEW),
        (brokers(1, fenced=(1,)), 1, "All brokers are currently fenced."),
        ([], 1, "All brokers are currently fenced."),
        (brokers(1), 0, "Invalid replication factor 0: the replication factor must be positive."),
    ],
)  # fmt: skip
def test_too_few_brokers(usable: list[UsableBroker], replicas: int, message: str) -> None:
    with pytest.raises(Refused) as refused:
        place(usable, partitions=1, replicas=replicas, rng=Random(0))

    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)
