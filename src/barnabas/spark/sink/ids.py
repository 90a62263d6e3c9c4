"""Names of a query's transactional ids and groups, and which ids of a cluster belong to the query. Pure.

Scope task:   <prefix>-<query id>-<slot> is the transactional id of a slot, and the group of its marks
Scope batch:  <prefix>-<checkpoint name> is the transactional id, <that>-<task> the id and group of a claim
              <prefix>-<query id>-batch is the group of its marks
Both:         <prefix>-<query id> is the group of the record of runs

A query id is unique. The name of a checkpoint is not: the same path may exist in another Spark cluster. An
id with that name belongs to the query only if a mark or a claim confirms it (earlier_runs.py).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


def slot_id(prefix: str, query: str, slot: int) -> str:
    return f"{prefix}-{query}-{slot}"


def batch_id(prefix: str, checkpoint: str) -> str:
    return f"{prefix}-{checkpoint}"


def claim_id(batch: str, task: int) -> str:
    """`batch` is the transactional id of the whole micro-batch."""
    return f"{batch}-{task}"


def record_group(prefix: str, query: str) -> str:
    return f"{prefix}-{query}"


def batch_marks_group(prefix: str, query: str) -> str:
    """Named by the query id, which a moved checkpoint keeps."""
    return f"{prefix}-{query}-batch"


class FoundIds(NamedTuple):
    """Ids of a query. `slots` maps ids to prefixes; `batches` and `claims` map prefixes to ids."""

    slots: dict[str, str]
    batches: dict[str, str]
    claims: dict[str, list[str]]

    @property
    def prefixes(self) -> list[str]:
        return sorted({*self.slots.values(), *self.batches, *self.claims})


def ids_of_query(ids: Iterable[str], query: str, checkpoint: str | None) -> FoundIds:
    """Select the ids of the query, with any prefix. Without the name of the checkpoint, only slots."""
    of_slot = re.compile(rf"(.*)-{re.escape(query)}-\d+")
    of_batch = None if checkpoint is None else re.compile(rf"(.*)-{re.escape(checkpoint)}(-\d+)?")
    found = FoundIds({}, {}, {})
    for each in ids:
        if (slot := of_slot.fullmatch(each)) is not None:
            found.slots[each] = slot[1]
        elif of_batch is not None and (batch := of_batch.fullmatch(each)) is not None:
            if batch[2] is None:
                found.batches[batch[1]] = each
            else:
                found.claims.setdefault(batch[1], []).append(each)
    return found


def pattern_of_query(query: str, checkpoint: str | None) -> str:
    """Return a regular expression (RE2) that matches all ids of the query, and possibly others."""
    names = "|".join(re.escape(name) for name in (query, checkpoint) if name is not None)
    return f".*-({names})(-.*)?"
