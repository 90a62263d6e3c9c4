"""The options of the Spark source and sink, found by recording which ones the parsers read."""

from collections.abc import Mapping

from barnabas.spark.options import sink, source
from barnabas.spark.options.values import Values

# kafka.* options are settings of our clients, and not recorded.
SERVERS = {"kafka.bootstrap.servers": "localhost:1"}


class Asked(Values):
    """Records the name of each option that is read."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.names: set[str] = set()

    def text(self, name: str) -> str | None:
        self.names.add(name)
        return super().text(name)


def source_options_asked() -> set[str]:
    found: set[str] = set()
    for options in (source.batch_options, source.stream_options):
        asked = Asked({**SERVERS, "subscribe": "any"})
        options(asked)
        found |= asked.names
    return found


def sink_options_asked() -> set[str]:
    asked = Asked({**SERVERS, "topic": "any"})
    sink.sink_options(asked, overwrite=False, directory="/")
    return asked.names - set(sink._OF_SPARK)


def spark_options() -> set[str]:
    return source_options_asked() | sink_options_asked()
