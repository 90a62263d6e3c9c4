"""The broker, from sockets to responses.

network/ reads requests and sends responses in order; requests/ dispatches them to handlers and schedules long
ones; handlers/ has one file per API. Handlers use produce/, fetch/ and coordination/, which leads to the
coordinators of groups and transactions. cluster/ is the broker's part in the cluster, metrics/ its
monitoring. broker.py wires everything together; services.py lists what handlers may use.
"""
