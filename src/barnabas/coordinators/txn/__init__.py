"""Transactional ids and their transactions: pure decisions over one partition of __transaction_state.

shard.py is the door. Every decision is an Outcome, as in coordinators/group. What follows from the end of a
transaction, writing its markers, is asked of the shell by answering `ground.markers`. See
docs/design/0015-transactions.md.
"""
