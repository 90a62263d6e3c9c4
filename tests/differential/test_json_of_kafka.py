"""Every message at every version as JSON, to the byte what Kafka 4.3.0's converters and its library write."""

import json

import pytest

from barnabas.protocol.schema.codec import decode
from barnabas.protocol.schema.json import json_text, to_json
from barnabas.protocol.schema.struct import schema_of
from support.kafka.vectors import vector_lines
from support.wire.messages import MESSAGES

pytestmark = pytest.mark.kernel


def test_all_vectors_have_the_text_that_kafka_wrote() -> None:
    compared = 0
    for line in vector_lines():
        vector = json.loads(line)
        cls = MESSAGES.get(vector["message"])
        if cls is None or vector["version"] not in schema_of(cls).versions:
            continue
        message, _ = decode(cls, vector["version"], bytes.fromhex(vector["hex"]))

        text = json_text(to_json(message, vector["version"]))

        assert line.endswith(f'"json":{text}}}'), (vector["message"], vector["version"])
        compared += 1
    assert compared > 5400
