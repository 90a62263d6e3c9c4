"""The transaction coordinator: pure decisions over one partition of __transaction_state.

Handlers call the decide functions of initializing.py, adding.py and ending.py. A refusal is an answer with
Kafka's error code. To have the markers of an ended transaction written, a decision answers `table.markers`.
See docs/design/0015-transactions.md.
"""
