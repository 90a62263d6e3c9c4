"""The producer: it collects records into batches, sends them, and reports the outcome of each record.

producer.py          the public Producer class
settings.py          its settings;  errors.py: errors of sending records
delivery.py          the awaitable outcome of a record
accumulator.py       collects records into batches by size, linger and memory  (pure)
memory.py            buffer.memory and the senders that wait for it
queues.py            batches per partition, and which may be sent next; sticky partitions (pure)
numbering.py         sequence numbers: exactly once and in order (idempotence) (pure)
batch.py stamp.py    one batch; producer id, epoch and sequence in its header  (pure)
partitioner.py       chooses the partition of a record;  key_hashes.py (compiled)
sender.py            timers, leaders, and one node_sender.py per broker
outcomes.py          what a response means for a batch
identity.py          the producer id without a transactional.id
tables.py            Arrow tables to batches

transaction.py             the public classes of transactions
transaction_errors.py      their errors, and what an error code means for a transaction
transaction_state.py       the state machine                                     (pure)
transaction_manager.py     initialize, begin, join; add partitions and offsets; handle errors
transaction_completion.py  prepare, commit, abort, hand over
transaction_requests.py    one attempt of each request
"""
