"""The kinds of members: a client, the protocol that it speaks, and the program that it is."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from support.clients.java_client import java_program
from support.clients.remote_build import go_program


@dataclass(frozen=True, slots=True)
class Kind:
    """`command` builds the program if it has to be built: CannotBuild if it cannot. `no_static` says why it
    cannot restart under its instance id, where it cannot."""

    name: str
    command: Callable[[], list[str]]
    protocol: str = "classic"
    assignor: str = ""
    no_static: str = ""

    @property
    def is_new_protocol(self) -> bool:
        return self.protocol == "consumer"


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"support.group_runs.{module}"]


CONFLUENT = Kind("confluent-kafka", _python("confluent_member"))
CONFLUENT_COOPERATIVE = Kind(
    "confluent-kafka-cooperative", _python("confluent_member"), assignor="cooperative-sticky"
)
CONFLUENT_CONSUMER = Kind("confluent-kafka-848", _python("confluent_member"), protocol="consumer")
CONFLUENT_RANGE = Kind(
    "confluent-kafka-848-range", _python("confluent_member"), protocol="consumer", assignor="range"
)
KAFKA_PYTHON = Kind("kafka-python", _python("kafka_python_member"))
AIOKAFKA = Kind("aiokafka", _python("aiokafka_member"))

PYTHON_KINDS = (CONFLUENT, CONFLUENT_CONSUMER, KAFKA_PYTHON, AIOKAFKA)

JAVA = Kind("java", lambda: java_program("GroupMember"))
OTHER_KINDS = (
    JAVA,
    Kind(
        "java-cooperative",
        lambda: java_program("GroupMember"),
        assignor="org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    ),
    Kind("java-848", lambda: java_program("GroupMember"), protocol="consumer"),
    Kind("franz-go", lambda: go_program("franzmember")),
    Kind(
        "franz-go-848",
        lambda: go_program("franzmember"),
        protocol="consumer",
        no_static="franz-go 1.22.2 does not name the instance id that it lets go of, which brokers refuse",
    ),
)
