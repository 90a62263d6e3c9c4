"""What is asked of groups from outside: commits without a member, groups listed, described and deleted."""

import pytest

from barnabas.protocol.error_codes import ErrorCode
from support.clients.client import Ability, Client, Refused, opened
from support.clients.entries import Story, entry
from support.clients.group_client import (
    Committed,
    GroupAdmin,
    GroupProtocol,
    GroupSeen,
    Member,
    MemberOptions,
)
from support.clients.stage import Stage, wait_until
from support.clients.stories.words import numbered, offsets

BOTH = frozenset({0, 1})


@entry("commit without being a member, with metadata, and read it back", needs=(Ability.COMMIT_OUTSIDE,))
def commit_outside(client: Client, stage: Stage) -> None:
    topic, group = stage.topic(partitions=3), stage.fresh_name()
    first = {0: Committed(offset=3, metadata="größer als 城"), 1: Committed(offset=0)}
    second = {0: Committed(offset=2, metadata="back by one")}

    with opened(client.group_admin(stage.address)) as admin:
        before = admin.committed(group, topic, [0, 1, 2])
        admin.commit(group, topic, first)
        between = admin.committed(group, topic, [0, 1, 2])
        admin.commit(group, topic, second)
        after = admin.committed(group, topic, [0, 1, 2])

    assert before == {}
    assert between == first
    assert after == {**first, **second}


def _described(protocol: GroupProtocol) -> Story:
    def story(client: Client, stage: Stage) -> None:
        topic, group = stage.topic(partitions=2), stage.fresh_name()

        with opened(client.group_admin(stage.address)) as admin:
            with opened(_member(client, stage, topic, group, protocol)) as member:
                _wait_for_both(member)
                stable = GroupSeen(state="Stable", members=(BOTH,))
                wait_until(lambda: admin.describe(group, topic) == stable, "the group is stable")
                assert group in admin.groups()
            empty = GroupSeen(state="Empty", members=())
            wait_until(lambda: admin.describe(group, topic) == empty, "the group is empty")
            assert group in admin.groups()

    return story


entry("list and describe groups (classic protocol)", needs=(Ability.DESCRIBE_GROUPS,))(_described("classic"))
entry(
    "list and describe groups (KIP-848)",
    needs=(Ability.DESCRIBE_GROUPS, Ability.DESCRIBE_NEW_GROUPS, Ability.NEW_GROUP_PROTOCOL),
)(_described("consumer"))


@entry("delete a group, but not while it has members", needs=(Ability.DELETE_GROUPS,))
def delete_group(client: Client, stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), stage.fresh_name()

    with opened(client.group_admin(stage.address)) as admin:
        with opened(_member(client, stage, topic, group)) as member:
            _wait_for_both(member)
            with pytest.raises(Refused) as not_empty:
                admin.delete(group)
        wait_until(lambda: admin.describe(group, topic).state == "Empty", "the group is empty")
        admin.delete(group)
        listed = admin.groups()
        with pytest.raises(Refused) as not_there:
            admin.delete(group)

    assert not_empty.value.code is ErrorCode.NON_EMPTY_GROUP
    assert group not in listed
    assert not_there.value.code is ErrorCode.GROUP_ID_NOT_FOUND


@entry("alter the offsets of a group, but not while it has members", needs=(Ability.ALTER_GROUP_OFFSETS,))
def alter_offsets(client: Client, stage: Stage) -> None:
    topic, group = stage.topic(), stage.fresh_name()
    stage.write(topic, numbered(10))

    with opened(client.group_admin(stage.address)) as admin:
        admin.alter_offsets(group, topic, {0: 7})
        found = admin.committed(group, topic, [0])
        with opened(_member(client, stage, topic, group)) as member:
            seen = member.read(3)
            with pytest.raises(Refused) as refused:
                admin.alter_offsets(group, topic, {0: 1})
        unchanged = admin.committed(group, topic, [0])

    assert found[0].offset == 7
    assert offsets(seen) == [7, 8, 9]
    # kafkajs looks for members itself, and asks no further.
    assert refused.value.code in (ErrorCode.UNKNOWN_MEMBER_ID, None)
    assert unchanged == found


@entry(
    "delete offsets of a group, but not those of a topic that is subscribed to",
    needs=(Ability.DELETE_GROUP_OFFSETS, Ability.COMMIT_OUTSIDE),
)
def delete_offsets(client: Client, stage: Stage) -> None:
    topic, group = stage.topic(partitions=2), stage.fresh_name()
    commits = {0: Committed(offset=3), 1: Committed(offset=4)}

    with opened(client.group_admin(stage.address)) as admin:
        admin.commit(group, topic, commits)
        with opened(_member(client, stage, topic, group)) as member:
            _wait_for_both(member)
            with pytest.raises(Refused) as refused:
                admin.delete_offsets(group, topic, [0])
            during = admin.committed(group, topic, [0, 1])
        wait_until(lambda: _deleted(admin, group, topic), "the offset is deleted")
        after = admin.committed(group, topic, [0, 1])

    assert refused.value.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert during == commits
    assert after == {1: commits[1]}


def _deleted(admin: GroupAdmin, group: str, topic: str) -> bool:
    """False while the coordinator has not heard yet that the member is gone."""
    try:
        admin.delete_offsets(group, topic, [0])
    except Refused as refused:
        if refused.code is not ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
            raise
        return False
    return True


def _member(
    client: Client, stage: Stage, topic: str, group: str, protocol: GroupProtocol = "classic"
) -> Member:
    return client.member(stage.address, topic, MemberOptions(group=group, protocol=protocol))


def _wait_for_both(member: Member) -> None:
    wait_until(lambda: member.partitions() == BOTH, "the member has both partitions")
