"""The shell of the coordinators: shard ownership, loading, writing, responses and timers.

The core decides; this package appends the records of its outcomes to the partition's log, waits until they
are committed, and sends the responses. It accesses the log only as a LedPartition (ports.py).
"""
