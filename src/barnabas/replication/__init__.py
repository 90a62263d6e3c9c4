"""Leaders and followers: which partitions this broker has, what is committed, and who waits for more.

partition.py is one partition; replicas.py has all of them and follows the metadata image.
"""
