"""Assignors of classic groups, with Kafka's names and semantics. Pure.

Members of one group may run different clients, and the leader decides for all. Clients must agree on the
name, the format and the guarantees (balance, stickiness); sticky assignors may differ in details. Racks are
ignored.
"""
