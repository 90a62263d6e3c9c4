"""Committed offsets of groups, and pending offsets of open transactions.

offsets.py is the entry point and decides OffsetCommit. record.py is the record of one commit; table.py stores
committed offsets compactly, pending.py those of open transactions. load.py reads a log fast. txn_commits.py,
reads.py and removal.py decide the other requests.
"""
