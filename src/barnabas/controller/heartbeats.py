"""BrokerHeartbeat (key 63): unfencing, fencing and controlled shutdown of brokers.

A broker is fenced until it has read the metadata log up to its own registration. A broker in controlled
shutdown first loses its leaderships, and may stop when all other brokers have read the change. A broker
without heartbeats is fenced after the session timeout. A fenced broker leads no partition and is in no ISR.
"""

from enum import Enum

from barnabas.base.ids import Uuid
from barnabas.controller.decision import Contact, Decision, Refused, check_broker_epoch
from barnabas.controller.facts import Facts
from barnabas.controller.leadership import in_sync_on, leaderless, leads_any, partitions, updates
from barnabas.controller.refusals import refusal
from barnabas.metadata.changes import Changes
from barnabas.metadata.image import BrokerImage, MetadataImage
from barnabas.metadata.node_changes import FENCE, SHUTTING_DOWN, UNFENCE
from barnabas.protocol.error_codes import ErrorCode
from barnabas.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.protocol.stored.cluster_nodes import BrokerRegistrationChangeRecord


class BrokerState(Enum):
    FENCED = 0
    UNFENCED = 1
    CONTROLLED_SHUTDOWN = 2
    SHUTDOWN_NOW = 3

    @property
    def fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def heartbeat(image: MetadataImage, request: BrokerHeartbeatRequest, facts: Facts) -> Decision:
    try:
        broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    except Refused as refused:
        return Decision((), refusal(request, refused.code))
    registered_at = facts.sessions.registered_at(broker.id)
    if registered_at is None:
        return Decision((), refusal(request, ErrorCode.STALE_BROKER_EPOCH))
    now = _current(broker, facts)
    following = _next(image, request, facts, now, registered_at)
    records = [] if following is now else _transition(image, broker, following, facts)
    records += _directories(image, broker, request, facts, records)
    contact = Contact(
        broker_id=broker.id,
        metadata_offset=request.current_metadata_offset,
        fenced=following.fenced,
        shutting_down=following is BrokerState.CONTROLLED_SHUTDOWN,
    )
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=following.fenced,
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(tuple(records), response, atomic=False, contact=contact)


def fence(image: MetadataImage, broker: BrokerImage, facts: Facts) -> Decision:
    """Fence a broker whose session has timed out."""
    return Decision(tuple(_transition(image, broker, BrokerState.FENCED, facts)), atomic=False)


def _current(broker: BrokerImage, facts: Facts) -> BrokerState:
    if facts.sessions.shutdown_offset(broker.id) is not None:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED


def _next(
    image: MetadataImage,
    request: BrokerHeartbeatRequest,
    facts: Facts,
    now: BrokerState,
    registered_at: int,
) -> BrokerState:
    match now:
        case BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.SHUTDOWN_NOW
            # After a controlled shutdown only a new registration unfences the broker.
            leaving = image.brokers[request.broker_id].in_controlled_shutdown
            caught_up = request.current_metadata_offset >= registered_at
            return BrokerState.UNFENCED if caught_up and not request.want_fence and not leaving else now
        case BrokerState.UNFENCED:
            if request.want_fence:
                return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
            if not request.want_shut_down:
                return now
            leads = leads_any(image, request.broker_id)
            return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
        case _:
            offset = facts.sessions.shutdown_offset(request.broker_id)
            assert offset is not None
            # The other brokers must have read the leader changes before this broker stops.
            known = offset <= facts.sessions.lowest_active_offset()
            gone = known and not leads_any(image, request.broker_id)
            return BrokerState.SHUTDOWN_NOW if gone else now


def _transition(
    image: MetadataImage, broker: BrokerImage, following: BrokerState, facts: Facts
) -> list[object]:
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    settings = facts.settings
    match following:
        case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
            change.fenced = FENCE
            return [*updates(image, settings, in_sync_on(image, broker.id), removed=broker.id), change]
        case BrokerState.UNFENCED:
            change.fenced = UNFENCE
            return [change, *updates(image, settings, leaderless(image), added=broker.id)]
        case _:
            moved = updates(image, settings, in_sync_on(image, broker.id), removed=broker.id)
            change.in_controlled_shutdown = SHUTTING_DOWN
            return [*moved] if broker.in_controlled_shutdown else [change, *moved]


def _directories(
    image: MetadataImage,
    broker: BrokerImage,
    request: BrokerHeartbeatRequest,
    facts: Facts,
    decided: list[object],
) -> list[object]:
    """Apply the broker's report about its directories, on top of the records decided already."""
    records: list[object] = []
    known = broker.registration.log_dirs
    failed = [one for one in known if one in request.offline_log_dirs]
    if failed:
        changes = Changes(image)
        for record in decided:
            changes.apply(record)
        after = changes.finish(image.offset, image.epoch, image.append_time_ms)
        records += _without(after, broker.id, set(failed), facts)
        remaining = [one for one in known if one not in failed]
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining)
        )
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and _differ(cordoned, broker.registration.cordoned_log_dirs):
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned
            )
        )
    return records


def _without(image: MetadataImage, broker_id: int, failed: set[Uuid], facts: Facts) -> list[object]:
    affected = [
        placed
        for placed in partitions(image)
        if any(
            replica == broker_id and directory in failed
            for replica, directory in zip(
                placed.partition.replicas, placed.partition.directories, strict=True
            )
        )
    ]
    return [*updates(image, facts.settings, affected, removed=broker_id)]


def _differ(cordoned: list[Uuid], before: list[Uuid] | None) -> bool:
    return before is None or set(cordoned) != set(before)
