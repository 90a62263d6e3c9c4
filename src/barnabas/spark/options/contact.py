"""How long a query tries to reach brokers for the first time: an option of the source and of the sink."""

from typing import Final

from barnabas.spark.options.errors import BadOption
from barnabas.spark.options.values import Values

CONNECT_TIMEOUT: Final = "connectTimeout"
# With what Spark needs beside it, a query fails within 30 s.
_DEFAULT_MS: Final = 25_000


def connect_ms(given: Values) -> int:
    found = given.duration_ms(CONNECT_TIMEOUT)
    if found == 0:
        raise BadOption(CONNECT_TIMEOUT, "it must be greater than 0 ms")
    return _DEFAULT_MS if found is None else found
