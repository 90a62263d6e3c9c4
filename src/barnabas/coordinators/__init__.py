"""Replicated state machines whose logs are internal topics. group/ is that of consumer groups, txn/ of transactions."""
