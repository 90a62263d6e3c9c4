"""EndTxnRequest and EndTxnResponse, versions 0-5, used once per transaction (compiled).

Both codecs follow the declarations in messages/transactions.py field by field.
"""

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from barnabas.protocol.schema.encoder import ENCODE_FAILURES
from barnabas.protocol.schema.explain import DECODE_FAILURES, explain_bytes
from barnabas.protocol.tuned.reader import (
    NO_TAGS,
    Reader,
    read_bool,
    read_int16,
    read_int64,
    read_string,
    read_tags,
)
from barnabas.protocol.tuned.writer import write_int16, write_no_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class EndTxnRequest:
    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: i64 = 0,
        producer_epoch: i32 = 0,
        committed: bool = False,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self.unknown_tags = unknown_tags


@mypyc_attr(free_list_len=1, acyclic=True)
class EndTxnResponse:
    def __init__(
        self,
        *,
        throttle_time_ms: i32 = 0,
        error_code: i32 = 0,
        producer_id: i64 = -1,
        producer_epoch: i32 = -1,
        unknown_tags: tuple[tuple[int, bytes], ...] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.unknown_tags = unknown_tags


def decode_end_txn_request(version: i64, buf: bytes, at: i64) -> tuple[EndTxnRequest, i64]:
    """Return the request at `at` and the position after it; raise Malformed and nothing else."""
    try:
        return _request(version, buf, at)
    except DECODE_FAILURES:
        raise explain_bytes(EndTxnRequest, version, buf, at) from None


def _request(version: i64, buf: bytes, at: i64) -> tuple[EndTxnRequest, i64]:
    r = Reader(version, version >= 3, buf, at)
    request = EndTxnRequest()
    request.transactional_id = read_string(r)
    request.producer_id = read_int64(r)
    request.producer_epoch = read_int16(r)
    request.committed = read_bool(r)
    if r.flexible:
        request.unknown_tags = read_tags(r)
    return request, r.at


def encode_end_txn_response(version: i64, response: EndTxnResponse, parts: list[bytes]) -> bool:
    """Append the response to `parts`; return False and append nothing if its shape is unusual."""
    w = BytesWriter()
    try:
        _response(w, version, response)
    except ENCODE_FAILURES:
        return False
    parts.append(w.getvalue())
    return True


def _response(w: BytesWriter, version: i64, response: EndTxnResponse) -> None:
    write_i32_be(w, response.throttle_time_ms)
    write_int16(w, response.error_code)
    if version >= 5:
        write_i64_be(w, response.producer_id)
        write_int16(w, response.producer_epoch)
    write_no_tags(w, version >= 3, response.unknown_tags)
