"""Leaders and followers: the partitions of this broker, their high watermarks, and waiting requests.

partition.py is one partition; replicas.py has all of them and applies the metadata image.
"""
