"""Read and write the CSV of --from-file and --export. Pure, except for reading the file.

A line is TOPIC,PARTITION,OFFSET, or GROUP,TOPIC,PARTITION,OFFSET for several groups.
"""

import csv
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.cli.group.failures import CommandFailed
from barnabas.cli.option_parser import integer, long

# Jackson, which writes Kafka's file, quotes every cell that is longer than this, and every cell with a
# character that sorts before the dash.
_UNQUOTED_LENGTH_MAX: Final = 24
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
    """Return the offsets by group. Lines without a group belong to the only group of the command line."""
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
    """Whether the row has the form TOPIC,PARTITION,OFFSET."""
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
    if len(text) <= _UNQUOTED_LENGTH_MAX and all(character >= _FIRST_PLAIN for character in text):
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'
