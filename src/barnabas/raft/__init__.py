"""Consensus for the metadata log `__cluster_metadata-0` by Kafka's KRaft protocol, in which followers fetch.

core.py makes the decisions and is pure: an event and the time go in, effects come out. driver/ owns the log,
the files and the timers, and executes the effects. This package does not interpret the records.
"""
