"""Producer state of a log: sequences, epochs, transactions, and the snapshot file."""
