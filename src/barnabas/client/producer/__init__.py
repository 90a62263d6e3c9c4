"""The producer: records in, batches out, and for each record the word of what became of it.

producer.py          what users call
settings.py          what they can set
accumulator.py       records become batches, by size, linger and memory        (pure)
partition_queue.py   the batches of one partition, and which may go next       (pure)
numbering.py         sequences: each batch once, in order (idempotence)        (pure)
batch.py split.py stamp.py                                                     (pure)
partitioner.py       which partition a record goes to                          (pure)
memory.py            buffer.memory, and those who wait for it
sender.py            time, leaders, and one node_sender.py a broker
outcomes.py          what an answer means for a batch
identity.py          the producer id
delivery.py          what a user holds of a record that was sent
table.py             Arrow tables to batches;  table_calls.py: sent as there is room

transaction.py             transactions as users see them;  transaction_errors.py: what they are told
transaction_state.py       what may be done when                                     (pure)
transaction_verdicts.py    what a refusal means                                      (pure)
prepared.py                the name of one that is prepared (two-phase commit)       (pure)
handed_over.py             the name of one that others write into or end             (pure)
handing_over.py            handed over, opened for others, joined
initializing.py            the producer id, and what was left under it
transactions.py            begun and filled;  additions.py: partitions that are added first (version 1)
endings.py                 committed or aborted
transaction_requests.py    one try of each request
"""
