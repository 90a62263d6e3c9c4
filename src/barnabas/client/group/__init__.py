"""Group membership of a consumer: assignment of partitions and committed offsets.

Pure: subscription.py, assignors.py, classic.py and modern.py (the two protocols as state machines). They
decide; session.py and member.py carry it out with coordinator.py and committed_offsets.py.
"""
