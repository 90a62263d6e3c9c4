"""The consumer: reads partitions by assignment, as messages, lists of them, or Arrow tables.

positions.py holds what is assigned and where it stands, delivery.py what has arrived and was not read.
fetcher.py is one task a broker that brings data in; upkeep.py finds out where to begin and whether a position
still holds. decode.py and message.py are compiled. consumer.py is what users see.
"""
