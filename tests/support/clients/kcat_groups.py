"""kcat as a member of a group. What it has it says on its standard error, and it commits when it ends."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from time import monotonic

from support.clients.client import Seen
from support.clients.group_client import (
    HEARTBEAT_MS,
    MOMENT_MS,
    SESSION_MS,
    Committed,
    GroupSeen,
    Handed,
    MemberOptions,
)
from support.clients.kcat_process import KcatProcess
from support.clients.kcat_words import common, refused, seen

_REBALANCED = re.compile(r"% Group .* rebalanced .*: (assigned|revoked): (.*)")
_PARTITION = re.compile(r"\[(\d+)\]")


class KcatMember:
    def __init__(self, address: str, topic: str, options: MemberOptions) -> None:
        settings = {
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
        }
        if options.instance is not None:
            settings["group.instance.id"] = options.instance
        chosen = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
        self._handed = Handed(self._poll)
        self._process = KcatProcess([*common(address), "-u", "-J", *chosen, "-G", options.group, topic])

    def partitions(self) -> frozenset[int]:
        self._handed.work()
        has: set[int] = set()
        for line in list(self._process.complaints):
            if found := _REBALANCED.match(line):
                named = {int(each) for each in _PARTITION.findall(found[2])}
                has = has | named if found[1] == "assigned" else has - named
        return frozenset(has)

    def read(self, count: int) -> list[Seen]:
        return self._handed.read(count)

    def _poll(self) -> list[Seen]:
        output = self._process.output
        if not output:
            if self._process.ended:
                raise refused("\n".join(self._process.complaints))
            self._process.wait_for_more(monotonic() + MOMENT_MS / 1000)
        return [seen(json.loads(output.popleft())) for _ in range(len(output))]

    def commit(self) -> None:
        """When it ends."""
        self.close()

    def close(self) -> None:
        self._process.end()


class KcatGroupAdmin:
    """All of it is declared in Kcat.cannot."""

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        raise NotImplementedError

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        raise NotImplementedError

    def groups(self) -> Collection[str]:
        raise NotImplementedError

    def describe(self, group: str, topic: str) -> GroupSeen:
        raise NotImplementedError

    def delete(self, group: str) -> None:
        raise NotImplementedError

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        raise NotImplementedError

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        return
