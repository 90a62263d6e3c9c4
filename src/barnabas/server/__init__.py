"""The broker: sockets in, answers out.

network/ takes bytes from clients and gives answers back in order; dispatch.py finds the handler;
handlers/ has one file per family of APIs; broker.py wires everything together, and lifecycle.py has the
conversation with the controller. What is remembered lies below: storage, replication, metadata, controller.
"""
