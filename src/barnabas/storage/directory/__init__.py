"""One log directory: its lock, identity, checkpoints and contents, in Kafka's file formats."""
