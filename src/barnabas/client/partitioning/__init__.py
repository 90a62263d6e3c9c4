"""Key hashes that are compatible with other Kafka clients.

Records with the same key stay in order only if all producers, in any language, send them to the same
partition. These are the hashes of Java's producer (murmur2.py) and of librdkafka (crc.py, fnv1a.py,
murmur2.py), bit for bit; tests/fixtures/partitions-of-keys.json holds recorded results of those clients.

Records without a key are handled elsewhere (producer/partitioner.py).
"""
