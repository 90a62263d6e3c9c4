"""The bytes of a transaction: encoded once, and patched for every other one.

What changes from one transaction to the next are the producer's id, its epoch and the sequence of its
batches; all have a fixed size and a fixed place. A batch that was patched has another checksum. Of an answer
only the error codes are read, which have fixed places too unless something went wrong: then it is decoded.
"""

import time
from struct import Struct
from typing import Any, Final

from barnabas.base.crc32c import crc32c
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.exchange import decode_response, encode_request, response_parts
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
)
from barnabas.records.builder import build_batch

CLIENT_ID: Final = "bench"
TIMEOUT_MS: Final = 30_000
ACKS_ALL: Final = -1
VALUE: Final = b"x" * 100
# Values that are found again in the encoded bytes, because nothing else looks like them.
MARKED_ID: Final = 0x7A6B5C4D3E2F1A0B
MARKED_EPOCH: Final = 0x6D5C
MARKED_CODE: Final = 0x5B4A
_SHORT: Final = Struct(">h")
_ID_AND_EPOCH: Final = Struct(">qh")
# Within a batch: its checksum, where what that covers begins, and the numbers of its producer.
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_COVERED_FROM: Final = 21
_NUMBERS: Final = Struct(">qhi")
_NUMBERS_AT: Final = 43
# An answer to EndTxn 5 from its length on: after the header and the throttle time.
_ENDED: Final = Struct(">13xhqh")


def places_of(sought: bytes, data: bytes | bytearray) -> list[int]:
    """Where it occurs, without overlaps."""
    found = []
    at = data.find(sought)
    while at >= 0:
        found.append(at)
        at = data.find(sought, at + len(sought))
    return found


class NumberedFrame:
    """A request that names the producer's id and epoch once, next to each other."""

    def __init__(self, body: object, version: int, key: ApiKey) -> None:
        self.frame = bytearray(encode_request(body, version, key=key, correlation_id=1, client_id=CLIENT_ID))
        (self._at,) = places_of(_ID_AND_EPOCH.pack(MARKED_ID, MARKED_EPOCH), self.frame)

    def numbered(self, producer_id: int, epoch: int) -> bytearray:
        _ID_AND_EPOCH.pack_into(self.frame, self._at, producer_id, epoch)
        return self.frame


def end_frame(version: int, transactional_id: str, *, commit: bool) -> NumberedFrame:
    body = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=MARKED_ID,
        producer_epoch=MARKED_EPOCH,
        committed=commit,
    )
    return NumberedFrame(body, version, ApiKey.END_TXN)


def add_frame(version: int, transactional_id: str, topic: str, partitions: list[int]) -> NumberedFrame:
    body = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=MARKED_ID,
        v3_and_below_producer_epoch=MARKED_EPOCH,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
    )
    return NumberedFrame(body, version, ApiKey.ADD_PARTITIONS_TO_TXN)


class ProduceFrame:
    """One request with the same batch for each of its partitions."""

    def __init__(
        self, version: int, transactional_id: str, topic: str, partitions: list[int], records_each: int
    ) -> None:
        batch = build_batch(
            [(int(time.time() * 1000), None, VALUE, ())] * records_each,
            producer_id=MARKED_ID,
            producer_epoch=MARKED_EPOCH,
            base_sequence=0,
            transactional=True,
        )
        data = [PartitionProduceData(index=index, records=batch) for index in partitions]
        body = ProduceRequest(
            transactional_id=transactional_id,
            acks=ACKS_ALL,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        self.frame = bytearray(
            encode_request(body, version, key=ApiKey.PRODUCE, correlation_id=1, client_id=CLIENT_ID)
        )
        self.records_each = records_each
        self._batch = bytearray(batch)
        self._covered = memoryview(self._batch)[_COVERED_FROM:]
        self._places = places_of(batch, self.frame)
        assert len(self._places) == len(partitions)

    def numbered(self, producer_id: int, epoch: int, sequence: int) -> bytearray:
        batch = self._batch
        _NUMBERS.pack_into(batch, _NUMBERS_AT, producer_id, epoch, sequence)
        _CRC.pack_into(batch, _CRC_AT, crc32c(self._covered))
        for at in self._places:
            self.frame[at : at + len(batch)] = batch
        return self.frame


class AnswerCodes:
    """Reads the error codes of answers to one request. `example` has MARKED_CODE wherever one is."""

    def __init__(self, example: object, version: int, key: ApiKey) -> None:
        frame = b"".join(response_parts(example, version, key=key, correlation_id=1))
        self._size = len(frame)
        self._version, self.key = version, key
        gaps, end = "", 0
        for at in places_of(_SHORT.pack(MARKED_CODE), frame):
            gaps += f"{at - end}xh"
            end = at + _SHORT.size
        self._codes = Struct(">" + gaps)

    def first_error(self, answer: bytes) -> int:
        """The first code that is not 0, of an answer that begins with its length; 0 if there is none."""
        if len(answer) != self._size:
            _, body = decode_response(answer[4:], self._version, key=self.key)
            return next(filter(None, codes_of(body)), 0)
        return next(filter(None, self._codes.unpack_from(answer)), 0)


def codes_of(body: Any) -> list[int]:
    match body:
        case ProduceResponse():
            return [one.error_code for topic in body.responses for one in topic.partition_responses]
        case AddPartitionsToTxnResponse():
            topics = body.results_by_topic_v3_and_below
            return [one.partition_error_code for topic in topics for one in topic.results_by_partition]
        case _:
            return [body.error_code]


def produce_codes(version: int, topic: str, partitions: list[int]) -> AnswerCodes:
    each = [PartitionProduceResponse(index=index, error_code=MARKED_CODE) for index in partitions]
    example = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=each)])
    return AnswerCodes(example, version, ApiKey.PRODUCE)


def add_codes(version: int, topic: str, partitions: list[int]) -> AnswerCodes:
    each = [
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=MARKED_CODE)
        for index in partitions
    ]
    results = [AddPartitionsToTxnTopicResult(name=topic, results_by_partition=each)]
    example = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    return AnswerCodes(example, version, ApiKey.ADD_PARTITIONS_TO_TXN)


def end_codes(version: int) -> AnswerCodes:
    return AnswerCodes(EndTxnResponse(error_code=MARKED_CODE), version, ApiKey.END_TXN)


def next_numbers(answer: bytes) -> tuple[int, int]:
    """The producer's id and epoch for the transaction after this one, as EndTxn 5 tells them."""
    _, producer_id, epoch = _ENDED.unpack_from(answer)
    return producer_id, epoch
