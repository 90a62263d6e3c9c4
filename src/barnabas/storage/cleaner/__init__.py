"""Compaction: for each key of a log the last committed value stays, and nothing else moves.

Two passes over files that no longer change. build.py reads the part that was never compacted and fills a
map from keys to their last offsets (key_map.py, key_hash.py). rewrite.py reads every segment from the start
and says what is left of each batch; transactions.py tells it which data was aborted and which markers nobody
needs any more. job.py puts the passes together as work for an executor, swap.py lets the new files take the
place of the old ones, and pick.py says which log is next. Offsets and order never change.
"""
