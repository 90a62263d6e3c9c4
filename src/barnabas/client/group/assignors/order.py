"""The order of members, which all clients must agree on."""

from collections.abc import Mapping

from barnabas.client.group.subscription import Subscription


def in_order(members: Mapping[str, Subscription]) -> list[str]:
    """Sort static members first, by instance id, because their member ids change with every restart."""

    def key(member: str) -> tuple[bool, str]:
        instance = members[member].instance_id
        return (instance is None, member if instance is None else instance)

    return sorted(members, key=key)
