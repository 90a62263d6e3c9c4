"""One partition's log on a disk, and the directories that hold many of them.

Everything that Barnabas keeps is kept in such logs: topics, offsets, transactions, cluster metadata. Files
and formats are Kafka's. State belongs to the event loop; what may wait for a disk is handed to an executor.
"""
