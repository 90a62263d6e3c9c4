"""The broker: sockets in, answers out.

network/ takes bytes from clients and returns responses in order; requests/ finds the handler of a request and
gives long ones turns; handlers/ has one file per API. Behind them are produce/, fetch/ and coordination/,
which leads to the coordinators of groups and transactions. cluster/ is the broker's part in the cluster,
metrics/ what it reports about itself. broker.py wires everything together; services.py names what handlers
may use.
"""
