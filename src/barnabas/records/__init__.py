"""The record batch, version 2: the same bytes on the wire and on disk.

Headers are read and stamped in place, batches are checked and built, records are decoded to objects
or, many batches at once, to Arrow columns. Nothing here does IO or reads a clock.
"""
