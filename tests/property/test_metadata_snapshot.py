"""Any image survives a round trip through its records."""

import random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.changes import Changes
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.metadata.snapshot import records_of
from barnabas.protocol.schema.struct import schema_of
from barnabas.protocol.stored.framing import decode_metadata_record, encode_metadata_record
from support.metadata_images import random_records, replay


@given(seed=st.integers(0, 2**32))
def test_an_image_equals_the_image_built_from_its_records(seed: int) -> None:
    image = replay(random_records(random.Random(seed)), offset=9, epoch=2, time_ms=5)

    written = [encode_metadata_record(one, schema_of(type(one)).versions.last) for one in records_of(image)]
    again = replay((decode_metadata_record(one).message for one in written), offset=9, epoch=2, time_ms=5)

    assert again == image


@given(seed=st.integers(0, 2**32), cut=st.integers(0, 60))
def test_records_applied_in_two_parts_make_the_same_image(seed: int, cut: int) -> None:
    records = list(random_records(random.Random(seed)))
    # Not within a topic: its partitions are in one batch, in any order.
    cut = next(
        (i for i in range(cut, len(records)) if type(records[i]).__name__ == "TopicRecord"), len(records)
    )

    first = replay(records[:cut], offset=1, epoch=1, time_ms=1)
    changes = Changes(first)
    for record in records[cut:]:
        changes.apply(record)

    assert changes.finish(2, 2, 2) == replay(records, offset=2, epoch=2, time_ms=2)
    assert first == replay(records[:cut], offset=1, epoch=1, time_ms=1)
    assert replay([]) == EMPTY_IMAGE
