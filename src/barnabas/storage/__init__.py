"""One partition's log on a disk, and the directories that hold many of them.

All durable data is in such logs: topics, offsets, transactions, cluster metadata. Files and formats are
Kafka's. State belongs to the event loop; work that may block on the disk runs in an executor.
"""
