"""The shell of coordinators: which shards are here, loading them, writing for them, answering, timers.

The core decides; this room appends what it decided to the partition's log, waits until that is committed, and
gives the answers. It knows the log only as a LedPartition (ports.py).
"""
