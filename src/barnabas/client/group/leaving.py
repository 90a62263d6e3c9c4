"""Sends the request to leave a group, best effort."""

import logging
from typing import Final

from barnabas.client.errors import ClientError
from barnabas.client.group.coordinator import Coordinator
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages.classic_groups import LeaveGroupRequest
from barnabas.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest

logger = logging.getLogger(__name__)

_SEVERAL_FROM: Final = 3


async def send_leave(
    coordinator: Coordinator, request: LeaveGroupRequest | ConsumerGroupHeartbeatRequest
) -> None:
    """Try once: otherwise the broker removes the member after its session timeout."""
    try:
        if isinstance(request, LeaveGroupRequest):
            version = await coordinator.version_of(ApiKey.LEAVE_GROUP)
            if version < _SEVERAL_FROM:
                request = LeaveGroupRequest(
                    group_id=request.group_id, member_id=request.members[0].member_id, members=[]
                )
        await coordinator.ask(request)
    except ClientError as error:
        logger.info("leave request failed error=%s", error)
