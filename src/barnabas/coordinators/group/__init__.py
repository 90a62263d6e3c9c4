"""Consumer groups and committed offsets: pure decisions over one partition of __consumer_offsets.

shard.py is the door. It hands each request to classic/, consumer/ or offsets/; they answer with an Outcome:
records to be written, and answers to be given once they are. apply() is what changes anything that a record
tells of, here and after a restart. What is only in memory (who waits for a join, when a session ends) may
change while an Outcome is made: if its records cannot be written the shard is thrown away and loaded again
from its log, as after a crash. Nothing here waits, reads a clock or throws dice of its own.
"""
