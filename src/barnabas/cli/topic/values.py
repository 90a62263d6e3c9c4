"""Parse option values of `barnabas topics`: settings, replica assignments, ids."""

import re
from collections.abc import Iterable

from barnabas.base.errors import Malformed
from barnabas.base.ids import ZERO_UUID, Uuid, parse_uuid
from barnabas.cli.option_parser import integer
from barnabas.cli.tool import ToolFailed


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Parse name=value options. If a name is repeated, the last value wins."""
    found = {}
    for text in texts:
        parts = re.split(r"\s*=\s*", text)
        # Java's split() drops empty parts at the end, so `name=` has one part.
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise ToolFailed(
                "requirement failed: Invalid topic config: all configs to be added must be in the format"
                ' "key=val".'
            )
        found[parts[0].strip()] = parts[1].strip()
    return found


def parse_assignment(text: str) -> dict[int, list[int]]:
    """Parse `1:2,2:3`: partition 0 on brokers 1 and 2, partition 1 on brokers 2 and 3."""
    found: dict[int, list[int]] = {}
    for number, brokers in enumerate(text.rstrip(",").split(",")):
        replicas = [broker_id(each.strip()) for each in brokers.split(":")]
        twice = [broker for at, broker in enumerate(replicas) if broker in replicas[:at]]
        if twice:
            listed = ",".join(map(str, dict.fromkeys(twice)))
            raise ToolFailed(f"Partition replica lists may not contain duplicate entries: {listed}")
        found[number] = replicas
        if len(replicas) != len(found[0]):
            raise ToolFailed(f"Partition {number} has different replication factor: {replicas}")
    return found


def broker_id(text: str) -> int:
    try:
        return integer(text)
    except ValueError:
        raise ToolFailed(f'For input string: "{text}"') from None


def parse_topic_id(text: str) -> Uuid:
    try:
        return parse_uuid(text)
    except Malformed as error:
        raise ToolFailed(str(error)) from None


def is_given(topic_id: Uuid) -> bool:
    """Whether the id is given: Kafka's tool treats the zero id as absent."""
    return topic_id != ZERO_UUID
