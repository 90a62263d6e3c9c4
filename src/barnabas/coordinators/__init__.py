"""Coordinators: replicated state machines whose logs are internal topics. group/ for groups, txn/ for
transactions."""
