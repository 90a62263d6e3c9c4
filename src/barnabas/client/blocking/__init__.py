"""Blocking Admin, Producer and Consumer for scripts and threads, each with an event loop in its own thread.

    from barnabas.client.blocking import Admin, Consumer, Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        delivery = producer.send("orders", b"value", key=b"k")
        print(delivery.result(timeout=10).offset)
    with Consumer(bootstrap_servers="localhost:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign_topic("orders")
        for message in consumer:
            print(message.value)

They have the settings, methods and errors of the async clients; each is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.client.blocking.admin import Admin
    from barnabas.client.blocking.consumer import Consumer
    from barnabas.client.blocking.delivery import Delivery
    from barnabas.client.blocking.producer import Producer

_MODULES = {"Admin": "admin", "Consumer": "consumer", "Delivery": "delivery", "Producer": "producer"}

__all__ = ["Admin", "Consumer", "Delivery", "Producer"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
