"""Log compaction: keep the last committed value of each key, without changing offsets or order.

The cleaner makes two passes over closed segments. build.py reads the dirty part and fills a map from keys to
their last offsets (key_map.py, key_hash.py). rewrite.py reads every segment from the start and decides what
is left of each batch; transactions.py tells it which data was aborted and which markers are obsolete. job.py
combines the passes into work for an executor, swap.py replaces the old files by the new ones, and pick.py
chooses the next log.
"""
