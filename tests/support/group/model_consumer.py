"""A client of the consumer protocol of KIP-848."""

from collections.abc import Iterable
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.coordinators.decision.outcome import Caller
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)
from support.group.model import GroupWorld
from support.group.model_clients import HOST, NO_SUCH_EPOCH, REBALANCE_MS, GroupClient


class ConsumerClient(GroupClient):
    """Speaks the consumer protocol."""

    def __init__(
        self,
        world: GroupWorld,
        group: str,
        name: str,
        *,
        topics: Iterable[str],
        regex: str = "",
        instance_id: str | None = None,
        version: int = 1,
    ) -> None:
        super().__init__(world, group, name, topics, instance_id)
        self.version = version
        self._starts = 0
        # Version 0 knows none.
        self.regex = regex if version > 0 else ""
        self.epoch = 0
        self.was_given_by_server = True
        # An answer was lost: it must ask for everything, or it might never hear what it has.
        self._missed_an_answer = False
        self._name_itself()

    @property
    def epoch_or_generation(self) -> int:
        return self.epoch

    @property
    def is_in(self) -> bool:
        return self.epoch > 0

    def _name_itself(self) -> None:
        self._starts += 1
        self.id = f"{self.name}.{self._starts}" if self.version > 0 else ""

    def starts_anew(self) -> None:
        super().starts_anew()
        self.epoch = 0
        self._name_itself()

    def turn(self) -> None:
        if self.epoch == 0:
            self.join()
        else:
            self.heartbeat()

    def ask_again(self) -> None:
        self.join()

    def join(self) -> None:
        self._drop()
        self.epoch = 0
        self._beat(rebalance_timeout_ms=REBALANCE_MS, topic_partitions=[], **self._subscription())

    def heartbeat(self, *, tells_what_it_has: bool = True, loses_the_answer: bool = False) -> None:
        said: dict[str, Any] = {}
        if tells_what_it_has:
            self.releasing = set()
            said["topic_partitions"] = self._says()
            if self._missed_an_answer:
                said |= {"rebalance_timeout_ms": REBALANCE_MS, **self._subscription()}
        self._beat(loses_the_answer=loses_the_answer, **said)

    def subscribes(self, topics: Iterable[str], regex: str) -> None:
        self.topics = sorted(topics)
        self.regex = regex if self.version > 0 else ""
        if self.epoch > 0:
            self._beat(**self._subscription())

    def leave(self, *, comes_back: bool = False) -> None:
        """For good, or, if it is static, for a while."""
        self._beat(
            loses_the_answer=True, member_epoch=-2 if comes_back and self.instance_id is not None else -1
        )
        self.starts_anew()

    def _subscription(self) -> dict[str, Any]:
        regex = {"subscribed_topic_regex": self.regex} if self.version > 0 else {}
        return {"subscribed_topic_names": self.topics, **regex}

    def _says(self) -> list[ConsumerGroupHeartbeatTopicPartitions]:
        by_topic: dict[Uuid, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            by_topic.setdefault(topic_id, []).append(partition)
        return [
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic, partitions=partitions)
            for topic, partitions in by_topic.items()
        ]

    def _beat(self, *, loses_the_answer: bool = False, **said: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group,
                "member_id": self.id,
                "member_epoch": self.epoch,
                "instance_id": self.instance_id,
                **said,
            }
        )
        caller = Caller(self.name, HOST, self.version)
        self._missed_an_answer |= loses_the_answer
        self._ask(
            "heartbeat",
            lambda to, now: self.world.shard.consumer_heartbeat(request, caller, to, now),
            (lambda _: None) if loses_the_answer else self._take_answer,
        )

    def _take_answer(self, answer: Any) -> None:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.id, self.epoch = answer.member_id, answer.member_epoch
            if answer.assignment is not None:
                self._missed_an_answer = False
                given = answer.assignment.topic_partitions
                self._take({(one.topic_id, partition) for one in given for partition in one.partitions})
        elif code is ErrorCode.NOT_COORDINATOR:
            self._missed_an_answer = True
        elif self.epoch == 0 and code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_SERVER_ERROR):
            # A classic group that cannot become one of ours: not at all, or not in the midst of a round.
            self.out_for_good = code is ErrorCode.GROUP_ID_NOT_FOUND
        else:
            if code is not ErrorCode.GROUP_ID_NOT_FOUND:
                self._failed(code)
            self._drop()
            self.epoch = 0


def consumer_stranger(world: GroupWorld, group: str) -> ConsumerClient:
    """It says that it is a member, and is not."""
    stranger = ConsumerClient(world, group, "stranger", topics=["orders"])
    stranger.epoch = NO_SUCH_EPOCH
    return stranger
