"""Replicated state machines whose logs are internal topics: group/ of consumer groups, txn/ of transactions."""
