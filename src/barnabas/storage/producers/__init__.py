"""Who wrote what to a log: sequences, epochs and transactions of its producers, and their snapshot file."""
