"""One segment of a log: the .log file, its indexes, its aborted transactions, and its batches."""
