"""Commits the progress of a stream to a consumer group, so that lag tools see it.

The group is `kafka.group.id`, or is named by the query id, which Spark passes to tasks only. In that case a
task commits the start offsets of its micro-batch with the reader's random mark as metadata; the driver finds
the group by the mark and makes all further commits.

A failed commit never fails the query.
"""

import logging
from collections.abc import Mapping
from typing import NamedTuple
from uuid import uuid4

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.group_offsets import CommittedOffset
from barnabas.client.blocking.admin import Admin
from barnabas.client.errors import ClientError
from barnabas.spark.offsets import Offsets
from barnabas.spark.options.client_settings import admin_settings
from barnabas.spark.options.source import SourceOptions
from barnabas.spark.task_context import query_id

logger = logging.getLogger(__name__)


class Announcement(NamedTuple):
    """Offsets that a task commits for the driver to the group `prefix-query`, with the mark as metadata."""

    prefix: str
    mark: str
    reached: dict[TopicPartition, int]


def announce(announcement: Announcement, client: Mapping[str, str]) -> None:
    """Commit the announcement. Runs in a task."""
    query = query_id()
    if query is None:
        logger.warning("progress not committed reason=no query id in the task context")
        return
    offsets = {
        tp: CommittedOffset(offset=offset, metadata=announcement.mark)
        for tp, offset in announcement.reached.items()
    }
    try:
        with Admin(admin_settings(client)) as admin:
            admin.alter_group_offsets(f"{announcement.prefix}-{query}", offsets)
    except ClientError as error:
        logger.warning("progress not committed query=%s error=%s", query, error)


class Progress:
    """Commits progress on the driver while a query runs."""

    def __init__(self, options: SourceOptions) -> None:
        self._wanted = options.commits_progress
        self._group = options.group_id
        self._prefix = options.group_id_prefix
        self._mark = uuid4().hex
        self._announced = False
        self._committed: dict[TopicPartition, int] = {}
        self._failing = False

    def reached(self, admin: Admin, offsets: Offsets) -> None:
        """Commit offsets whose preceding records are processed."""
        if not self._wanted or not offsets:
            return
        try:
            if self._group is None and self._announced:
                self._group = self._find(admin)
                self._announced = self._group is not None
            moved = {tp: offset for tp, offset in offsets.items() if self._committed.get(tp) != offset}
            if self._group is None or not moved:
                return
            admin.alter_group_offsets(self._group, moved)
            self._committed.update(moved)
            self._failing = False
        except ClientError as error:
            # Log only the first of consecutive failures: this runs at every trigger.
            if not self._failing:
                logger.warning("progress not committed group=%s error=%s", self._group, error)
            self._failing = True

    def announcement(self, offsets: Offsets) -> Announcement | None:
        """Return what one task has to commit; None once the group is known."""
        if not self._wanted or self._group is not None or not offsets:
            return None
        self._announced = True
        return Announcement(self._prefix, self._mark, dict(offsets))

    def _find(self, admin: Admin) -> str | None:
        names = [name for name in admin.list_groups() if name.startswith(self._prefix + "-")]
        for name, committed in admin.list_group_offsets_of(names).items():
            if any(one is not None and one.metadata == self._mark for one in committed.values()):
                logger.info("group for progress found group=%s", name)
                return name
        return None
