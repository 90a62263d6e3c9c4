"""Classic groups: a member computes the assignment, the coordinator drives the rebalances.

groups.py is the entry point. In a rebalance all members join (joins.py), the coordinator opens a generation
(rebalances.py), the leader sends the assignment and all members fetch it (syncs.py). group.py holds the state
of a group, stored.py its record.
"""
