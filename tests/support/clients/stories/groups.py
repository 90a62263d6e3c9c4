"""What members of a group ask for: to go on where the group was, to share, to be expected back.

Told with the classic protocol and with the new one (KIP-848).
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

from support.clients.client import Ability, Client, opened
from support.clients.entries import Story, entry
from support.clients.group_client import GroupProtocol, Member, MemberOptions
from support.clients.stage import Stage, wait_until
from support.clients.stories.words import START_MS, numbered, offsets

ALL = frozenset(range(4))
NAMES: dict[GroupProtocol, str] = {"classic": "classic protocol", "consumer": "KIP-848"}
NEEDS: dict[GroupProtocol, tuple[Ability, ...]] = {
    "classic": (),
    "consumer": (Ability.NEW_GROUP_PROTOCOL,),
}
STATIC_NEEDS: dict[GroupProtocol, tuple[Ability, ...]] = {
    "classic": (Ability.STATIC_MEMBERS,),
    "consumer": (Ability.NEW_STATIC_MEMBERS,),
}


def _going_on(protocol: GroupProtocol) -> Story:
    def story(client: Client, stage: Stage) -> None:
        topic = stage.topic()
        options = MemberOptions(group=stage.fresh_name(), protocol=protocol)
        stage.write(topic, numbered(6))

        with opened(client.member(stage.address, topic, options)) as member:
            before = member.read(6)
            member.commit()
        stage.write(topic, numbered(4, start=6))
        with opened(client.member(stage.address, topic, options)) as member:
            after = member.read(4)

        assert offsets(before) == [0, 1, 2, 3, 4, 5]
        assert offsets(after) == [6, 7, 8, 9]

    return story


def _sharing(protocol: GroupProtocol) -> Story:
    def story(client: Client, stage: Stage) -> None:
        topic = stage.topic(partitions=len(ALL))
        options = MemberOptions(group=stage.fresh_name(), protocol=protocol)

        with opened(client.member(stage.address, topic, options)) as stays:
            wait_until(lambda: stays.partitions() == ALL, "the first member has everything")
            with opened(client.member(stage.address, topic, options)) as leaves:
                _wait_for_halves(stays, leaves)
                _write_to_all(stage, topic, b"for both")
                _check_reading(b"for both", {stays: stays.partitions(), leaves: leaves.partitions()})
            wait_until(lambda: stays.partitions() == ALL, "who stays has everything again")
            _write_to_all(stage, topic, b"for one")
            _check_reading(b"for one", {stays: ALL})

    return story


def _expected_back(protocol: GroupProtocol) -> Story:
    def story(client: Client, stage: Stage) -> None:
        topic = stage.topic(partitions=len(ALL))
        group = stage.fresh_name()

        def join(instance: str) -> Member:
            options = MemberOptions(group=group, protocol=protocol, instance=instance)
            return client.member(stage.address, topic, options)

        with opened(join("stays")) as stays:
            wait_until(lambda: stays.partitions() == ALL, "the first member has everything")
            with opened(join("restarts")) as restarts:
                _wait_for_halves(stays, restarts)
                kept, had = stays.partitions(), restarts.partitions()
            assert stage.instances(group, protocol) == {"stays", "restarts"}

            with opened(join("restarts")) as restarts:

                def is_back() -> bool:
                    assert stays.partitions() == kept
                    return restarts.partitions() == had

                wait_until(is_back, "the member has its partitions again")
                _write_to_all(stage, topic, b"after the restart")
                _check_reading(b"after the restart", {stays: kept, restarts: had})

    return story


def _wait_for_halves(one: Member, other: Member) -> None:
    def are_halves() -> bool:
        shares = list(threads.map(lambda member: member.partitions(), (one, other)))
        return len(shares[0]) == len(shares[1]) == len(ALL) / 2 and shares[0] | shares[1] == ALL

    # Both members poll at the same time: kafka-python gives up a join at the end of a short poll, and
    # members that poll in turns then restart each other's rebalance for ever.
    with ThreadPoolExecutor(2) as threads:
        wait_until(are_halves, "each member has a half")


def _check_reading(value: bytes, shares: Mapping[Member, frozenset[int]]) -> None:
    """Each reads the record with this value in every partition of its share, and in no other."""

    def read_share(member: Member) -> None:
        seen: set[int] = set()
        while seen != shares[member]:
            # Nothing is committed, so who gets a partition begins with the first record.
            seen |= {each.partition for each in member.read(1) if each.value == value}
            assert seen <= shares[member]

    # At the same time, as programs do: who waits for a member to join again waits until that one works.
    with ThreadPoolExecutor(len(shares)) as threads:
        list(threads.map(read_share, shares))


def _write_to_all(stage: Stage, topic: str, value: bytes) -> None:
    for partition in ALL:
        stage.write(topic, [(START_MS, None, value, ())], partition=partition)


for _protocol in get_args(GroupProtocol):
    _name, _needs = NAMES[_protocol], NEEDS[_protocol]
    entry(f"in a group, commit, and go on from there ({_name})", needs=_needs)(_going_on(_protocol))
    entry(f"two members share, and the one that stays takes over ({_name})", needs=_needs)(
        _sharing(_protocol)
    )
    entry(
        f"a static member that restarts keeps its partitions ({_name})",
        needs=(*_needs, *STATIC_NEEDS[_protocol]),
    )(_expected_back(_protocol))
