"""The transaction coordinator: pure decisions over one partition of __transaction_state.

shard.py is the entry point. Every decision is an Outcome, as in coordinators/group. To have the markers of an
ended transaction written, a decision answers `table.markers`. See docs/design/0015-transactions.md.
"""
