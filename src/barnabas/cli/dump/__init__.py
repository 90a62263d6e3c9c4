"""The parts of `barnabas dump-log`, which prints the same lines as the tool of Kafka 4.3.

Files may be damaged, so nothing here trusts its input: a batch is printed as its header describes it, and the
dump ends where Kafka's would, with a DumpFailed that gives the reason.
"""
