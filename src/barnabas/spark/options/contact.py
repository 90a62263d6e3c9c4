"""The option connectTimeout of source and sink: the timeout of a query's first contact with brokers."""

from typing import Final

from barnabas.spark.options.errors import BadOption
from barnabas.spark.options.values import Values

CONNECT_TIMEOUT: Final = "connectTimeout"
# With Spark's own overhead, a query fails within 30 s.
_DEFAULT_MS: Final = 20_000


def connect_ms(given: Values) -> int:
    found = given.duration_ms(CONNECT_TIMEOUT)
    if found == 0:
        raise BadOption(CONNECT_TIMEOUT, "it must be greater than 0 ms")
    return _DEFAULT_MS if found is None else found
