"""Groups with a client of another language: more operations of the language that remote.py explains.

    open_member       {address, topic, group, protocol: "classic" or "consumer", instance: string or null,
                       session_ms, heartbeat_ms, moment_ms, reconnect_ms_max, wait_ms_max} -> null; subscribed
                       to the topic; begins with the first record where the group has no offset; commits only
                       what it is told to; the two times are for the classic protocol
    open_group_admin  {address, reconnect_ms_max, wait_ms_max} -> null

Of a member, which at the end of its input leaves the group as its client does when a program ends:

    partitions  {} -> [number...]: lets it work for moment_ms; what it has then; what came meanwhile is for
                 the next read
    read        as of a consumer
    commit      {} -> null: all that was read, and no more than that

Of an admin of groups, where commits are {"partition": {"offset", "metadata"}}:

    commit         {group, topic, commits} -> null; as one who is no member
    committed      {group, topic, partitions: [number...]} -> commits, of those that are there
    groups         {} -> [name...]
    describe       {group, topic} -> {"state": Kafka's word for it, "members": [[partition...]...]}
    delete         {group} -> null
    alter_offsets  {group, topic, offsets: {"partition": number}} -> null
    delete_offsets {group, topic, partitions: [number...]} -> null
"""

from collections.abc import Collection, Mapping, Sequence

from support.clients.client import Seen
from support.clients.group_client import (
    HEARTBEAT_MS,
    MOMENT_MS,
    SESSION_MS,
    Committed,
    GroupSeen,
    MemberOptions,
)
from support.clients.remote_lines import ask, open_part, seen
from support.clients.remote_process import RemoteProcess


class RemoteMember:
    def __init__(self, process: RemoteProcess, address: str, topic: str, options: MemberOptions) -> None:
        self._process = process
        open_part(
            process,
            "open_member",
            address=address,
            topic=topic,
            group=options.group,
            protocol=options.protocol,
            instance=options.instance,
            session_ms=SESSION_MS,
            heartbeat_ms=HEARTBEAT_MS,
            moment_ms=MOMENT_MS,
        )

    def partitions(self) -> frozenset[int]:
        return frozenset(ask(self._process, "partitions"))

    def read(self, count: int) -> list[Seen]:
        found = [seen(each) for each in ask(self._process, "read", count=count)]
        assert len(found) == count, f"{len(found)} of {count} records came"
        return found

    def commit(self) -> None:
        ask(self._process, "commit")

    def close(self) -> None:
        self._process.close()


class RemoteGroupAdmin:
    def __init__(self, process: RemoteProcess, address: str) -> None:
        self._process = process
        open_part(process, "open_group_admin", address=address)

    def commit(self, group: str, topic: str, commits: Mapping[int, Committed]) -> None:
        told = {
            str(partition): {"offset": each.offset, "metadata": each.metadata}
            for partition, each in commits.items()
        }
        ask(self._process, "commit", group=group, topic=topic, commits=told)

    def committed(self, group: str, topic: str, partitions: Sequence[int]) -> Mapping[int, Committed]:
        found = ask(self._process, "committed", group=group, topic=topic, partitions=list(partitions))
        return {int(partition): Committed(**each) for partition, each in found.items()}

    def groups(self) -> Collection[str]:
        return list(ask(self._process, "groups"))

    def describe(self, group: str, topic: str) -> GroupSeen:
        found = ask(self._process, "describe", group=group, topic=topic)
        return GroupSeen(state=found["state"], members=tuple(map(frozenset, found["members"])))

    def delete(self, group: str) -> None:
        ask(self._process, "delete", group=group)

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        told = {str(partition): offset for partition, offset in offsets.items()}
        ask(self._process, "alter_offsets", group=group, topic=topic, offsets=told)

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        ask(self._process, "delete_offsets", group=group, topic=topic, partitions=list(partitions))

    def close(self) -> None:
        self._process.close()
