"""Which addresses an error names when no broker answered."""

from barnabas.client.errors import BrokerUnavailable, ConnectionLost, RequestTimedOut
from barnabas.spark.first_contact import NotReached, addresses_of

OPTION = "(connectTimeout is 25 s)"


def test_bootstrap_servers_are_named() -> None:
    error = BrokerUnavailable(["one:9092", "two:9092"], "Connection refused; no connection within 10000 ms")

    assert str(NotReached("one:9092,two:9092", 25_000, error)) == (
        "no broker answered at one:9092,two:9092: Connection refused; no connection within 10000 ms " + OPTION
    )


def test_advertised_addresses_are_named() -> None:
    for error in (BrokerUnavailable(["kafka:909"], "unknown"), ConnectionLost("kafka:909", "unknown")):
        told = str(NotReached("kafka:9092", 25_000, error))

        assert told.startswith("no broker answered at kafka:909 (advertised by kafka:9092): ")


def test_a_timeout_of_the_whole_cluster_names_the_bootstrap_servers() -> None:
    error = RequestTimedOut("LIST_OFFSETS", "the cluster", 25_000)

    assert str(NotReached("one:9092", 25_000, error)) == (
        "no broker answered at one:9092: LIST_OFFSETS: no response from the cluster within 25000 ms " + OPTION
    )


def test_bootstrap_servers_are_normalized() -> None:
    assert addresses_of("PLAINTEXT://one:9092, two:9092,[::1]:9092") == {"one:9092", "two:9092", "[::1]:9092"}
