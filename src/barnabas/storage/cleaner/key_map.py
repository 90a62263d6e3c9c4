"""A hash table from keys to their last offsets, in bounded memory (compiled).

Each slot has three words: two for the key's hash and one for its offset, as many bytes as Kafka takes.
Collisions probe the next slot, which is in the CPU cache already. Entries are never removed.

The table starts small and grows up to the limit, because many dirty records often share few keys. While it
grows, the old table exists too: memory is briefly a quarter above the limit.

At the load limit of 0.9 an unsuccessful look-up visits 50 slots; at half of that load it visits 2.5.
"""

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from barnabas.storage.cleaner.key_hash import HashSecret, hash_key

# Kafka's log.cleaner.io.buffer.load.factor: how full the table may get.
LOAD_FACTOR: Final = 0.9
NOT_FOUND: Final = -1

SLOT_WORDS: Final = 3
SLOT_SIZE: Final = 24
FIRST_SLOTS: Final = 4096
GROWTH: Final = 4


class KeyMap:
    """Maps keys to offsets. `latest_offset` is how far the log has been read, keys or not."""

    def __init__(self, memory: int, secret: bytes, load_factor: float = LOAD_FACTOR) -> None:
        self._secret = HashSecret(secret)
        self._load_factor = load_factor
        self._slots_max: i64 = memory // SLOT_SIZE
        # The maximum number of keys.
        self.capacity: i64 = self._fitting(self._slots_max)
        assert self.capacity > 0, f"{memory} bytes hold no key at a load factor of {load_factor}"
        self._make_table(min(FIRST_SLOTS, self._slots_max))
        self.count: i64 = 0
        self.latest_offset: i64 = NOT_FOUND

    @property
    def utilization(self) -> float:
        """The share of the allowed memory in use, from 0 to 1."""
        return float(self.count) / float(self._slots_max)

    def clear(self) -> None:
        """Remove all entries and release their memory."""
        self._make_table(min(FIRST_SLOTS, self._slots_max))
        self.count = 0
        self.latest_offset = NOT_FOUND

    def put(self, key: bytes, offset: i64) -> bool:
        """Set the offset of a key; False if the table is full."""
        return self.put_slice(key, 0, len(key), offset)

    def get(self, key: bytes) -> int:
        """The key's last offset, or NOT_FOUND."""
        return self.get_slice(key, 0, len(key))

    def put_slice(self, data: bytes, at: i64, end: i64, offset: i64) -> bool:
        """put() for the key in data[at:end]."""
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
        # Stored as offset + 1, so that 0 marks a free slot.
        table[slot + 2] = offset + 1
        return True

    def get_slice(self, data: bytes, at: i64, end: i64) -> i64:
        """get() for the key in data[at:end]."""
        first, second = hash_key(self._secret, data, at, end)
        table = self._table
        return table[self._find(table, first, second) + 2] - 1

    def _find(self, table: vec[i64], first: i64, second: i64) -> i64:
        """The slot of the key, or the free slot where it would go."""
        size: i64 = len(table)
        at: i64 = first % self._slots * SLOT_WORDS
        # This ends because the table always has a free slot.
        while table[at + 2] != 0 and (table[at] != first or table[at + 1] != second):
            at += SLOT_WORDS
            if at == size:
                at = 0
        return at

    def _fitting(self, slots: i64) -> i64:
        """How many keys a table may hold. At least one slot stays free, or a search would not end."""
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
