"""The one batch in the data of a partition."""

import pytest

from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.schema.codec import decoder, encode
from barnabas.protocol.schema.decoder import compile_decoder
from barnabas.records.builder import build_batch
from barnabas.records.errors import InvalidBatch
from barnabas.server.produce.partition_batch import only_batch
from barnabas.storage.intake import Rules, take_produced
from support.log.logs import settings

pytestmark = pytest.mark.kernel

NOW = 1_700_000_000_000
GOOD = build_batch([(NOW, None, b"a", ()), (NOW + 7, b"k", b"b" * 100, ())])
DATA = PartitionProduceData(index=0, records=GOOD)
VERSION = 9


def test_a_batch_is_checked_whichever_decoder_read_its_request() -> None:
    topic = TopicProduceData(name="orders", partition_data=[DATA])
    frame = encode(ProduceRequest(acks=-1, topic_data=[topic]), VERSION)

    for decode in (compile_decoder(ProduceRequest, VERSION), decoder(ProduceRequest, VERSION)):
        request, _ = decode(frame, 0)
        (data,) = request.topic_data[0].partition_data

        batch = only_batch(data.records, VERSION)

        assert batch == GOOD
        start = getattr(data, "start", -1)
        assert take_produced(batch, Rules(settings()), NOW, start).max_timestamp == NOW + 7


def test_a_valid_batch_is_not_copied() -> None:
    view = memoryview(GOOD)

    assert only_batch(view, VERSION) is view


def test_an_incomplete_batch_after_the_first_is_dropped() -> None:
    assert only_batch(GOOD + GOOD[:50], VERSION) == GOOD


@pytest.mark.parametrize("records", [None, b"", GOOD[:20], GOOD[:-1], GOOD + GOOD], ids=str)
def test_no_batch_and_two_batches_are_refused(records: bytes | None) -> None:
    with pytest.raises(InvalidBatch):
        only_batch(records, VERSION)
