"""Classic groups: a member computes the assignment, the coordinator drives the rebalances.

In a rebalance all members join (joins.py), the coordinator opens a generation (rebalances.py), the leader
sends the assignment and all members fetch it (groups.py). group.py and member.py hold the state and
convert it to and from its record.
"""
