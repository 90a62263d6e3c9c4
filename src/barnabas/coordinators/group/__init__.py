"""The group coordinator: pure decisions over one partition of __consumer_offsets.

shard.py is the entry point. It dispatches each request to classic/, consumer/ or offsets/, which return an
Outcome: records to write, and answers to give when they are committed. They share the groups, timers and
settings in context.py; group.py is the interface of groups of both kinds.

Only apply() changes the state that records describe, live and after a restart. State that is only in memory
(pending joins, session deadlines) may change while an Outcome is computed: if its records cannot be written,
the shard is discarded and reloaded from its log, as after a crash. Nothing here waits, reads a clock or uses
a random generator of its own.
"""
