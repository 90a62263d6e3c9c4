"""Which partition the published clients put keys in: tests/fixtures/partitions-of-keys.json.

`java` is the Java producer's default; the other partitioners have librdkafka's names for them. A partition is
null where the client chose by chance. tests/interop/test_partitions_of_keys.py asks the clients and writes
the file; the tests of barnabas.client.producer.key_hashes read it.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path

FILE = Path(__file__).parents[2] / "fixtures" / "partitions-of-keys.json"


class RecordedPartitions:
    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = list(keys)
        # Java's own murmur2 of each key.
        self.murmur2: list[int] = []
        self._partitions: dict[str, dict[int, list[int | None]]] = {}

    @classmethod
    def read(cls) -> "RecordedPartitions":
        stored = json.loads(FILE.read_text())
        recorded = cls([b64decode(key) for key in stored["keys"]])
        recorded.murmur2 = stored["murmur2"]
        for partitioner, by_count in stored["partitions"].items():
            for count, partitions in by_count.items():
                recorded.add(partitioner, int(count), partitions)
        return recorded

    def add(self, partitioner: str, count: int, partitions: Sequence[int | None]) -> None:
        assert len(partitions) == len(self.keys)
        self._partitions.setdefault(partitioner, {})[count] = list(partitions)

    def get(self, partitioner: str, count: int) -> list[int | None] | None:
        """The partition of each key in a topic that has `count` of them, if it is recorded."""
        return self._partitions.get(partitioner, {}).get(count)

    def all(self) -> Iterator[tuple[str, int, list[int | None]]]:
        for partitioner, by_count in self._partitions.items():
            for count, partitions in by_count.items():
                yield partitioner, count, partitions

    def write(self) -> None:
        """A line for each list, so that a change can be read."""
        keys = json.dumps([b64encode(key).decode() for key in self.keys])
        rows = []
        for partitioner, by_count in self._partitions.items():
            lists = [f'    "{count}": {json.dumps(found)}' for count, found in sorted(by_count.items())]
            rows.append(f'  "{partitioner}": {{\n' + ",\n".join(lists) + "\n  }")
        murmur2 = json.dumps(self.murmur2)
        FILE.write_text(
            f'{{"keys": {keys},\n"murmur2": {murmur2},\n"partitions": {{\n' + ",\n".join(rows) + "\n}}\n"
        )
