"""What is kept inside log records, in the same notation as the wire messages.

Cluster metadata, committed offsets and groups, transactions, control records; and the two small
formats that travel as opaque bytes: the consumer protocol and the principal.
"""
