"""The content of log records, in the notation of the wire messages.

Cluster metadata, committed offsets and groups, transactions, control records; and the two small
formats that travel as opaque bytes: the consumer protocol and the principal.
"""
