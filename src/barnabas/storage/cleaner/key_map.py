"""The last offset of every key, in a bounded amount of memory (compiled).

A table of slots, each of three words: two of the key's hash and one of its offset, as many bytes as Kafka
takes. Collisions of slots go on to the next one, which is in the cache already. Nothing is ever removed.

The table starts small and grows with the keys up to the limit, because many dirty records are often of few
keys. While it grows the old table is there too: a quarter more than the limit, for a moment.

At the limit of 0.9 a look-up that finds nothing visits 50 slots; halfway it visits 2.5.
"""

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from barnabas.storage.cleaner.key_hash import HashSecret, hash_key

# log.cleaner.io.buffer.load.factor, Kafka's name for how full the table may get.
LOAD_FACTOR: Final = 0.9
NOT_FOUND: Final = -1

SLOT_WORDS: Final = 3
SLOT_SIZE: Final = 24
FIRST_SLOTS: Final = 4096
GROWTH: Final = 4


class KeyMap:
    """Keys to offsets. `latest_offset` is how far the log has been read, whether or not there were keys."""

    def __init__(self, memory: int, secret: bytes, load_factor: float = LOAD_FACTOR) -> None:
        self._secret = HashSecret(secret)
        self._load_factor = load_factor
        self._slots_max: i64 = memory // SLOT_SIZE
        # How many keys fit at the most.
        self.capacity: i64 = self._fitting(self._slots_max)
        assert self.capacity > 0, f"{memory} bytes hold no key at a load factor of {load_factor}"
        self._make_table(min(FIRST_SLOTS, self._slots_max))
        self.count: i64 = 0
        self.latest_offset: i64 = NOT_FOUND

    @property
    def utilization(self) -> float:
        """How much of the memory that is allowed is in use, from 0 to 1."""
        return float(self.count) / float(self._slots_max)

    def clear(self) -> None:
        """Forget everything, also the memory that it took."""
        self._make_table(min(FIRST_SLOTS, self._slots_max))
        self.count = 0
        self.latest_offset = NOT_FOUND

    def put(self, key: bytes, offset: i64) -> bool:
        """Note the offset of a key, in the place of an earlier one; False if there is no room for the key."""
        return self.put_slice(key, 0, len(key), offset)

    def get(self, key: bytes) -> int:
        """The offset that was put last, or NOT_FOUND."""
        return self.get_slice(key, 0, len(key))

    def put_slice(self, data: bytes, at: i64, end: i64, offset: i64) -> bool:
        """Do what put() does, for the key in data[at:end]."""
        first, second = hash_key(self._secret, data, at, end)
        table = self._table
        slot: i64 = self._find(table, first, second)
        if table[slot + 2] == 0:
            if self.count >= self._count_max:
                if self.count >= self.capacity:
                    return False
                self._grow()
                table = self._table
                slot = self._find(table, first, second)
            self.count += 1
            table[slot] = first
            table[slot + 1] = second
        # One more than the offset, so that 0 means that the slot is free.
        table[slot + 2] = offset + 1
        return True

    def get_slice(self, data: bytes, at: i64, end: i64) -> i64:
        """Do what get() does, for the key in data[at:end]."""
        first, second = hash_key(self._secret, data, at, end)
        table = self._table
        return table[self._find(table, first, second) + 2] - 1

    def _find(self, table: vec[i64], first: i64, second: i64) -> i64:
        """Where the three words of the key are, or the free ones where they would go."""
        size: i64 = len(table)
        at: i64 = first % self._slots * SLOT_WORDS
        # There is a free slot always, because the table is never full.
        while table[at + 2] != 0 and (table[at] != first or table[at + 1] != second):
            at += SLOT_WORDS
            if at == size:
                at = 0
        return at

    def _fitting(self, slots: i64) -> i64:
        """How many keys a table may hold: one slot at least stays free, or a search would not end."""
        most: i64 = int(float(slots) * self._load_factor)
        return min(most, slots - 1)

    def _make_table(self, slots: i64) -> None:
        self._slots: i64 = slots
        words: i64 = slots * SLOT_WORDS
        self._table = vec[i64]([0] * words)
        self._count_max: i64 = self._fitting(slots)

    def _grow(self) -> None:
        old = self._table
        self._make_table(min(self._slots * GROWTH, self._slots_max))
        table = self._table
        size: i64 = len(old)
        at: i64 = 0
        while at < size:
            if old[at + 2] != 0:
                slot: i64 = self._find(table, old[at], old[at + 1])
                table[slot] = old[at]
                table[slot + 1] = old[at + 1]
                table[slot + 2] = old[at + 2]
            at += SLOT_WORDS
