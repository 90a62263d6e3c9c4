"""Which partition a key belongs to, as the clients of others compute it.

Records with the same key are in order only if every producer puts them in the same partition, whatever it is
written in. So these are the hashes of Java's producer (murmur2.py) and of librdkafka (crc.py, fnv1a.py, and
murmur2.py again), bit for bit; tests/fixtures/partitions-of-keys.json holds what those clients did.

What to do with a record that has no key is not decided here.
"""
