"""The error for brokers that cannot be reached within connectTimeout when a query starts.

A running query tolerates broker restarts for as long as the client's own timeouts allow. Brokers that were
never reached are most often a wrong address, which the user should learn soon. source/cluster.py makes the
first contact for the source, sink/availability.py for the sink.
"""

from collections.abc import Sequence

from barnabas.base.errors import BarnabasError
from barnabas.client.errors import BrokerUnavailable, ClientError, ConnectionLost, RequestTimedOut
from barnabas.client.settings import join_address, split_address
from barnabas.spark.options.client_settings import CONNECT_TIMEOUT


class NotReached(BarnabasError):
    """No broker answered within connectTimeout or the allowed number of attempts."""

    def __init__(self, servers: str, timeout_ms: int, error: ClientError) -> None:
        given = addresses_of(servers)
        advertised = [each for each in _addresses(error) if each not in given]
        at = servers
        if advertised:
            at = f"{', '.join(advertised)} (advertised by {servers})"
        why = error.why if isinstance(error, BrokerUnavailable) else str(error)
        super().__init__(f"no broker answered at {at}: {why} ({CONNECT_TIMEOUT} is {timeout_ms / 1000:g} s)")


def addresses_of(servers: str) -> set[str]:
    """Return the HOST:PORT of each server in bootstrap.servers."""
    return {join_address(*split_address(each.strip())) for each in servers.split(",")}


def is_no_answer(error: ClientError) -> bool:
    """Whether brokers were unreachable or did not respond, rather than returned an error."""
    return isinstance(error, BrokerUnavailable | ConnectionLost | RequestTimedOut)


def _addresses(error: ClientError) -> Sequence[str]:
    if isinstance(error, BrokerUnavailable):
        return [each for each in error.addresses if ":" in each]
    if isinstance(error, ConnectionLost | RequestTimedOut) and ":" in error.address:
        return [error.address]
    return []
