"""What `barnabas dump-log` prints of each kind of file, line for line what Kafka 4.3's tool prints.

The tool is for files that may be damaged, so nothing here believes what it reads: a batch is shown as its
header has it, and the dump ends where Kafka's would, with a DumpFailed that says why.
"""
