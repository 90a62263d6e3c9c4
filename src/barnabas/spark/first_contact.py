"""The first contact of a query with its brokers, which may not take longer than connectTimeout.

Brokers that were reached once may go away for as long as the client's own timeouts allow: they are restarted,
and a query that runs must bear it. But brokers that were never reached are most often a wrong address: a user
wants to know that soon. The source asks in source/cluster.py, the sink in sink/reaching.py.
"""

from collections.abc import Sequence

from barnabas.base.errors import BarnabasError
from barnabas.client.errors import BrokerUnavailable, ClientError, ConnectionLost, RequestTimedOut
from barnabas.client.settings import join_address, split_address
from barnabas.spark.options.contact import CONNECT_TIMEOUT


class NotReached(BarnabasError):
    """No broker answered within connectTimeout, or as often as a query was to ask."""

    def __init__(self, servers: str, timeout_ms: int, error: ClientError) -> None:
        given = addresses_of(servers)
        advertised = [each for each in _addresses(error) if each not in given]
        at = servers
        if advertised:
            at = f"{', '.join(advertised)} (advertised by {servers})"
        why = error.why if isinstance(error, BrokerUnavailable) else str(error)
        super().__init__(f"no broker answered at {at}: {why} ({CONNECT_TIMEOUT} is {timeout_ms / 1000:g} s)")


def addresses_of(servers: str) -> set[str]:
    """HOST:PORT of each of bootstrap.servers."""
    return {join_address(*split_address(each.strip())) for each in servers.split(",")}


def is_no_answer(error: ClientError) -> bool:
    """Whether brokers were not reached, or said nothing, rather than that they refused."""
    return isinstance(error, BrokerUnavailable | ConnectionLost | RequestTimedOut)


def _addresses(error: ClientError) -> Sequence[str]:
    if isinstance(error, BrokerUnavailable):
        return [each for each in error.addresses if ":" in each]
    if isinstance(error, ConnectionLost | RequestTimedOut) and ":" in error.address:
        return [error.address]
    return []
