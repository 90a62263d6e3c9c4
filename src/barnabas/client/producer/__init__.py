"""The producer: it collects records into batches, sends them, and reports the outcome of each record.

producer.py          the public Producer class
settings.py          its settings
accumulator.py       collects records into batches by size, linger and memory  (pure)
partition_queue.py   the batches of one partition, and which may be sent next  (pure)
numbering.py         sequence numbers: exactly once and in order (idempotence) (pure)
batch.py split.py stamp.py                                                     (pure)
partitioner.py       chooses the partition of a record                         (pure)
memory.py            buffer.memory and its waiters
sender.py            timers, leaders, and one node_sender.py per broker
outcomes.py          what a response means for a batch
identity.py          the producer id
delivery.py          the awaitable outcome of a record
table.py             Arrow tables to batches;  table_calls.py: sends them as memory becomes free

transaction.py             the public transaction API;  transaction_errors.py: its errors
transaction_state.py       the state machine of transactions                         (pure)
transaction_verdicts.py    what an error code means for a transaction                (pure)
prepared.py                id of a prepared transaction (two-phase commit)           (pure)
handed_over.py             id of a transaction that other processes write into or end  (pure)
handing_over.py            handing over, opening for others, joining
initializing.py            InitProducerId, and the transaction left open by a predecessor
transactions.py            begin and add;  additions.py: AddPartitionsToTxn (version 1)
endings.py                 commit and abort
transaction_requests.py    one attempt of each request
"""
