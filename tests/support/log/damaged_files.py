"""What a case of damage is: a handful of files and the arguments of one run of dump-log.

DIR stands for the directory that the files are put into. damaged_logs.py and damaged_indexes.py have the
cases, made from the sample that Kafka wrote; dump_answers.py has what Kafka's own tool says to them.
"""

from pathlib import Path
from typing import NamedTuple

from barnabas.records.header import batch_headers
from support.kafka.sample import sample_files

FIRST = "00000000000000000000"
SECOND = "00000000000000003041"


class Case(NamedTuple):
    name: str
    arguments: tuple[str, ...]
    files: dict[str, bytes]

    def write(self, directory: Path) -> list[str]:
        """Put the files there and return the arguments that mean them."""
        for name, data in self.files.items():
            (directory / name).write_bytes(data)
        return [argument.replace("DIR", str(directory)) for argument in self.arguments]


def sample(path: str) -> bytes:
    return sample_files()[path]


def poke(data: bytes, at: int, new: bytes) -> bytes:
    """Other bytes in the place of those at `at`; from the end if that is negative."""
    at = at if at >= 0 else len(data) + at
    return data[:at] + new + data[at + len(new) :]


def flip(data: bytes, at: int) -> bytes:
    return poke(data, at, bytes([data[at] ^ 0xFF]))


def position(data: bytes, number: int) -> int:
    """Where the batch with this number starts."""
    return [at for at, _ in batch_headers(data)][number]


def one(name: str, file: str, data: bytes, *flags: str) -> Case:
    return Case(name, (*flags, "--files", f"DIR/{file}"), {file: data})
