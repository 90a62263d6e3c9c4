"""One log directory: its lock, its identity, its checkpoints and what is in it, in Kafka's small files."""
