"""The endpoints, on the client's listener, of the brokers that a response names."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from barnabas.metadata.image import MetadataImage

T = TypeVar("T")


def endpoints_of(
    image: MetadataImage, listener: str, nodes: Iterable[int], make: Callable[..., T]
) -> list[T]:
    """One `make(node_id=, host=, port=, rack=)` for every broker that has this listener."""
    found = []
    for node_id in sorted(nodes):
        broker = image.brokers.get(node_id)
        where = None if broker is None else broker.endpoint(listener)
        if broker is not None and where is not None:
            found.append(make(node_id=node_id, host=where[0], port=where[1], rack=broker.registration.rack))
    return found
