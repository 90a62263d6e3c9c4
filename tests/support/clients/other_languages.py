"""The clients of other languages than Python: what they are called here, and what they cannot do.

Their programs are in tests/interop/clients/.
"""

from collections.abc import Mapping
from functools import cached_property

from support.clients.client import Ability, Client
from support.clients.java_client import JAVA
from support.clients.remote import Remote
from support.clients.remote_build import go_program, node_program

_NO_CHANGE = "confluent-kafka-javascript's admin deletes groups, but changes no offsets of one"
_NO_CODEC = "kafkajs brings gzip; other codecs are packages of other people"

FRANZ_GO = Remote(
    "franz-go",
    lambda: go_program("franz"),
    {
        Ability.NEW_STATIC_MEMBERS: (
            "franz-go does not name its instance when it ends, so brokers refuse to let go of the member"
        ),
    },
)
SARAMA = Remote(
    "sarama",
    lambda: go_program("sarama"),
    {
        Ability.NEW_GROUP_PROTOCOL: "sarama knows the classic group protocol only",
        Ability.DESCRIBE_NEW_GROUPS: "sarama knows the classic group protocol only",
    },
)
KAFKAJS = Remote(
    "kafkajs",
    lambda: node_program("kafkajs.js"),
    {
        Ability.FAIL_OUT_OF_RANGE: "kafkajs starts again by itself where an offset is gone",
        Ability.SNAPPY: _NO_CODEC,
        Ability.LZ4: _NO_CODEC,
        Ability.ZSTD: _NO_CODEC,
        Ability.NULL_HEADERS: "kafkajs takes headers by name, which loses their order",
        Ability.NEW_GROUP_PROTOCOL: "kafkajs knows the classic group protocol only",
        Ability.DESCRIBE_NEW_GROUPS: "kafkajs knows the classic group protocol only",
        Ability.STATIC_MEMBERS: "kafkajs has no static members",
        Ability.COMMIT_OUTSIDE: "kafkajs commits as a member of the group only",
        Ability.DELETE_GROUP_OFFSETS: "kafkajs's admin deletes groups, but not single offsets of one",
    },
)


class ConfluentJs(Remote):
    """What its librdkafka can compress depends on the libraries that were there when it was built."""

    @cached_property
    def cannot(self) -> Mapping[Ability, str]:
        if "zstd" in self._ask_once("features"):
            return self._cannot
        return {
            **self._cannot,
            Ability.ZSTD: "the librdkafka of confluent-kafka-javascript was built on a machine without zstd",
        }


CONFLUENT_JS = ConfluentJs(
    "confluent-kafka-javascript",
    lambda: node_program("confluent.js", compiled="@confluentinc/kafka-javascript"),
    {
        Ability.SETTINGS: "confluent-kafka-javascript's admin cannot describe or change settings",
        Ability.ALTER_GROUP_OFFSETS: _NO_CHANGE,
        Ability.DELETE_GROUP_OFFSETS: _NO_CHANGE,
        Ability.NULL_HEADERS: "confluent-kafka-javascript takes strings and bytes as the value of a header",
        Ability.READ_NULL_HEADERS: "confluent-kafka-javascript shows a header without a value as empty",
    },
)

OTHER_LANGUAGES: tuple[Client, ...] = (JAVA, FRANZ_GO, SARAMA, KAFKAJS, CONFLUENT_JS)
