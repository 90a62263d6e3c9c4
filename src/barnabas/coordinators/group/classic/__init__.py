"""Classic groups: members agree on an assignment among themselves, the coordinator keeps the rounds.

groups.py is the door. A round is: everybody joins (joins.py), the coordinator opens a generation
(rebalances.py), its leader brings the assignment and everybody fetches it (syncs.py). What a group is and
whom it takes is in group.py, what the log says of it in stored.py.
"""
