"""The file of --from-file, which is what --export prints: TOPIC,PARTITION,OFFSET a line, or with the group
before it. Pure, but for reading it."""

import csv
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import CommandFailed
from barnabas.cli.option_parser import integer, long

# Jackson, which writes Kafka's, puts in quotes what is longer than this without looking at it, and what has
# a character before the dash.
_LOOKED_AT_MAX: Final = 24
_FIRST_PLAIN: Final = "-"

Plan = dict[str, dict[TopicPartition, int]]


def read_plan(path: str, groups: list[str]) -> Plan:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError):
        raise CommandFailed(f"java.io.IOException: Unable to read file {path}") from None
    while lines and not lines[-1]:
        lines.pop()
    return parse_plan(lines, groups)


def parse_plan(lines: list[str], groups: list[str]) -> Plan:
    """By group. Lines without a group are of the only one that was asked for."""
    rows = list(csv.reader(lines))
    plan: Plan = {}
    without_group = len(groups) == 1 and bool(rows) and _is_plain(rows[0])
    for number, row in enumerate(rows, 1):
        whole = [groups[0], *row] if without_group else row
        if len(whole) != 4:
            expected = 3 if without_group else 4
            raise CommandFailed(
                f"line {number} of the file has {len(row)} columns, expected {expected}: {','.join(row)}"
            )
        try:
            tp, offset = TopicPartition(whole[1], integer(whole[2].strip())), long(whole[3].strip())
        except ValueError as error:
            raise CommandFailed(f"line {number} of the file: {error}") from None
        plan.setdefault(whole[0], {})[tp] = offset
    return plan


def _is_plain(row: list[str]) -> bool:
    """Whether it can be read as TOPIC,PARTITION,OFFSET."""
    try:
        _, partition, offset = row
        integer(partition.strip()), long(offset.strip())
    except ValueError:
        return False
    return True


def written(plan: Mapping[str, Mapping[TopicPartition, int]], *, with_group: bool) -> str:
    lines = []
    for group, offsets in plan.items():
        for tp, offset in offsets.items():
            cells = [tp.topic, str(tp.partition), str(offset)]
            lines.append(_line([group, *cells] if with_group else cells))
    return "".join(lines)


def _line(cells: Iterable[str]) -> str:
    return ",".join(map(_cell, cells)) + "\n"


def _cell(text: str) -> str:
    if len(text) <= _LOOKED_AT_MAX and all(character >= _FIRST_PLAIN for character in text):
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'
