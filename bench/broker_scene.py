"""What a question is given: both brokers, the load client, a directory, and how thorough to be."""

from dataclasses import dataclass
from pathlib import Path

from broker_load import Load
from broker_pair import Pair

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Scene:
    """`pair` runs already; a question that needs fresh brokers makes its own below `directory`."""

    pair: Pair
    load: Load
    directory: Path
    quick: bool

    @property
    def rounds(self) -> int:
        return 1 if self.quick else ROUNDS

    def sized(self, full: int, quick: int) -> int:
        return quick if self.quick else full
