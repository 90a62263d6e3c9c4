"""Between the handlers and the coordinators of groups and transactions: which shards this broker leads."""
