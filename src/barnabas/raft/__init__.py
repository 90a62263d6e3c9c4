"""Consensus for the metadata log `__cluster_metadata-0`, as Kafka's KRaft does it: followers fetch.

core.py decides and is pure: an event and the time go in, effects come out. driver/ owns the log, the files
and the timers, and carries the effects out. What the records mean is not known here.
"""
