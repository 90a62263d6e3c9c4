"""One set of options of a batch query, and how options are written down."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from differential.spark.topics import FIRST_MS

Options = Mapping[str, str]
CHOICES: Final = ("assign", "subscribe", "subscribepattern")


class Case(NamedTuple):
    """`why` is in our message where we refuse it. `tasks`: the number of tasks is compared, too."""

    name: str
    options: Options
    why: str = ""
    tasks: bool = False
    # Nothing is added to the options.
    bare: bool = False

    def given(self, address: str) -> dict[str, str]:
        """Spark's own asks three times, a second apart, whatever is wrong: here without the pause."""
        if self.bare:
            return dict(self.options)
        chosen = any(name.lower() in CHOICES for name in self.options)
        return {
            "kafka.bootstrap.servers": address,
            "fetchOffset.retryIntervalMs": "1",
            **({} if chosen else {"subscribe": "orders"}),
            **self.options,
        }


def ms(seconds: float) -> str:
    return str(FIRST_MS + int(1000 * seconds))


def at(topic: str, *values: object) -> str:
    """JSON of a value for each partition of the topic."""
    inner = ",".join(f'"{number}":{value}' for number, value in enumerate(values))
    return f'{{"{topic}":{{{inner}}}}}'


def orders(*values: object) -> str:
    return at("orders", *values)


def part_of(topic: str, start: int | None = None, end: int | None = None, **more: str) -> Options:
    """One partition, or a part of it."""
    told = {"startingOffsets": start, "endingOffsets": end}
    offsets = {name: at(topic, offset) for name, offset in told.items() if offset is not None}
    return {"subscribe": topic, **offsets, **more}


# Where a task waits for records that do not come.
HASTY: Final = {"kafkaConsumer.pollTimeoutMs": "2000"}
LENIENT: Final = {"failOnDataLoss": "false"}
COMMITTED: Final = {"kafka.isolation.level": "read_committed"}
LATEST: Final = {"startingOffsetsByTimestampStrategy": "latest"}
