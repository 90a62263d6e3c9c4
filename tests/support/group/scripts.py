"""A broker of a script that coordinates a classic group of one member, and says no when a test wants it.

Two of them stand for a coordinator that moves: each says that the other one is it.
"""

import asyncio
from collections import defaultdict
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.exchange import decode_request, response_parts
from barnabas.protocol.messages.classic_groups import (
    Coordinator,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.protocol.messages.group_offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from support.our_client.peers import PORT, next_frame
from support.our_client.scripted_brokers import ScriptedBroker, metadata_of


class _Patient(ScriptedBroker):
    """Has no records, and lets fetches wait for some."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = decode_request(await next_frame(reader))
            key = request.api.key
            if key is ApiKey.FETCH:
                await asyncio.sleep(request.body.max_wait_ms / 1000)
            self.asked.append(request)
            body = self._versions() if key is ApiKey.API_VERSIONS else self._says[key](request.body)
            assert body is not None, "this one does not hang up"
            writer.writelines(
                response_parts(body, request.version, key=key, correlation_id=request.correlation_id)
            )


class GroupScript:
    """What the brokers share. `no` holds the errors that the next requests of a kind get, in order."""

    def __init__(self, *, newest: dict[ApiKey, int] | None = None) -> None:
        self.newest = newest or {}
        self.coordinator = 1
        self.generation = 0
        self.committed: dict[TopicPartition, int] = {}
        self.no: dict[ApiKey, list[ErrorCode]] = defaultdict(list)
        # The assignment, if it is not the one that the member itself has made.
        self.given: bytes | None = None
        self.joins: list[Any] = []
        self.commits: list[Any] = []
        self.leaves: list[Any] = []

    def broker(self, node: int = 1, *, of: tuple[int, ...] = (1,)) -> ScriptedBroker:
        says = {
            ApiKey.METADATA: metadata_of({"orders": [1, 1]}, brokers=of),
            ApiKey.FIND_COORDINATOR: self._find,
            ApiKey.JOIN_GROUP: self._join,
            ApiKey.SYNC_GROUP: self._sync,
            ApiKey.HEARTBEAT: lambda request: HeartbeatResponse(error_code=self._no(ApiKey.HEARTBEAT)),
            ApiKey.LEAVE_GROUP: self._leave,
            ApiKey.OFFSET_COMMIT: self._commit,
            ApiKey.OFFSET_FETCH: self._fetch_offsets,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.FETCH: lambda request: FetchResponse(responses=[]),
        }
        return _Patient(node, says=says, newest=self.newest)

    def _no(self, key: ApiKey) -> ErrorCode:
        return self.no[key].pop(0) if self.no[key] else ErrorCode.NONE

    def _find(self, request: Any) -> FindCoordinatorResponse:
        code, node = self._no(ApiKey.FIND_COORDINATOR), self.coordinator
        told = Coordinator(
            key="readers",
            node_id=node,
            host="127.0.0.1",
            port=PORT + node - 1,
            error_code=code,
            error_message=None,
        )
        if request.coordinator_keys:
            return FindCoordinatorResponse(coordinators=[told])
        return FindCoordinatorResponse(error_code=code, node_id=node, host="127.0.0.1", port=PORT + node - 1)

    def _join(self, request: Any) -> JoinGroupResponse:
        self.joins.append(request)
        code = self._no(ApiKey.JOIN_GROUP)
        if code is ErrorCode.NONE:
            self.generation += 1
        member = JoinGroupResponseMember(member_id="me", metadata=request.protocols[0].metadata)
        return JoinGroupResponse(
            error_code=code,
            generation_id=self.generation if code is ErrorCode.NONE else -1,
            protocol_name=request.protocols[0].name,
            leader="me",
            member_id="me",
            members=[member],
        )

    def _sync(self, request: Any) -> SyncGroupResponse:
        code = self._no(ApiKey.SYNC_GROUP)
        mine = request.assignments[0].assignment if request.assignments else b""
        if self.given is not None:
            mine = self.given
        return SyncGroupResponse(error_code=code, assignment=mine if code is ErrorCode.NONE else b"")

    def _leave(self, request: Any) -> LeaveGroupResponse:
        self.leaves.append(request)
        return LeaveGroupResponse(error_code=0)

    def _commit(self, request: Any) -> OffsetCommitResponse:
        self.commits.append(request)
        code = self._no(ApiKey.OFFSET_COMMIT)
        topics = []
        for topic in request.topics:
            if code is ErrorCode.NONE:
                for one in topic.partitions:
                    self.committed[TopicPartition(topic.name, one.partition_index)] = one.committed_offset
            rows = [
                OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                for one in topic.partitions
            ]
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=rows))
        return OffsetCommitResponse(topics=topics)

    def _fetch_offsets(self, request: Any) -> OffsetFetchResponse:
        code = self._no(ApiKey.OFFSET_FETCH)
        is_old = not request.groups
        topics = (request.topics if is_old else request.groups[0].topics) or []
        row = OffsetFetchResponsePartition if is_old else OffsetFetchResponsePartitions
        kind = OffsetFetchResponseTopic if is_old else OffsetFetchResponseTopics
        found: list[Any] = []
        for topic in topics:
            rows = [
                row(
                    partition_index=number,
                    committed_offset=self.committed.get(TopicPartition(topic.name, number), -1),
                    metadata="",
                    error_code=code,
                )
                for number in topic.partition_indexes
            ]
            found.append(kind(name=topic.name, partitions=rows))
        if is_old:
            return OffsetFetchResponse(topics=found)
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id="readers", topics=found, error_code=0)]
        )

    def _list_offsets(self, request: Any) -> ListOffsetsResponse:
        topics = [
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, error_code=0, offset=0, leader_epoch=0
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return ListOffsetsResponse(topics=topics)
