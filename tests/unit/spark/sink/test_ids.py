"""Which transactional ids of a cluster belong to a query."""

import pytest

from barnabas.base.re2_patterns import compile_re2
from barnabas.spark.sink.ids import (
    FoundIds,
    batch_id,
    batch_marks_group,
    claim_id,
    ids_of_query,
    pattern_of_query,
    record_group,
    slot_id,
)

QUERY, OTHER = "0b9c1c7e-6f0f-4d4e-9d3e-a9b0a1c2d3e4", "11111111-6f0f-4d4e-9d3e-a9b0a1c2d3e4"
PLACE = "5f2a9c0d1e3b4a5f6c7d8e9f"
BATCH = batch_id("sink", PLACE)


def test_slots_are_found_under_any_prefix() -> None:
    mine = {slot_id("sink", QUERY, 0): "sink", slot_id("a-b-1", QUERY, 12): "a-b-1"}

    assert ids_of_query([*mine, slot_id("sink", OTHER, 0)], QUERY, None) == FoundIds(mine, {}, {})


def test_micro_batches_and_their_claims_are_found_by_the_checkpoint() -> None:
    ids = [BATCH, claim_id(BATCH, 0), claim_id(BATCH, 10), batch_id("other", PLACE)]

    assert ids_of_query(ids, QUERY, PLACE) == FoundIds(
        {}, {"sink": BATCH, "other": ids[3]}, {"sink": [ids[1], ids[2]]}
    )
    assert ids_of_query(ids, QUERY, None) == FoundIds({}, {}, {})


@pytest.mark.parametrize(
    "name",
    [
        record_group("sink", QUERY),
        batch_marks_group("sink", QUERY),
        slot_id("sink", QUERY, 0) + "x",
        f"sink-{QUERY}-0-1",
        f"sink{QUERY}-0",
        f"sink-{PLACE}0",
        f"sink-{PLACE}-0-0",
        "sink-0",
    ],
)
def test_similar_ids_are_not_found(name: str) -> None:
    assert ids_of_query([name], QUERY, PLACE) == FoundIds({}, {}, {})


@pytest.mark.parametrize("checkpoint", [PLACE, None])
def test_the_pattern_matches_all_ids(checkpoint: str | None) -> None:
    pattern = compile_re2(pattern_of_query(QUERY, checkpoint))
    ids = [slot_id("a.b-1", QUERY, 3), BATCH, claim_id(BATCH, 3)]
    of_others = [slot_id("sink", OTHER, 0), "sink"]

    matching = [each for each in [*ids, *of_others] if pattern.fullmatch(each)]
    assert matching == (ids if checkpoint else ids[:1])
