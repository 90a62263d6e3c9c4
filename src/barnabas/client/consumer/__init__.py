"""The consumer: reads assigned partitions as messages, lists of messages, or Arrow tables.

consumer.py is the public class. positions.py holds the assigned partitions and their positions,
fetch_buffer.py the fetched data that is not read yet. fetcher.py is one fetch task per broker;
position_updates.py looks up start offsets and validates positions after leader changes. decode.py and
message.py are compiled.
"""
