"""Which addresses an error names when no broker answered."""

from barnabas.client.errors import BrokerUnavailable, ConnectionLost, RequestTimedOut
from barnabas.spark.first_contact import NotReached, addresses_of

OPTION = "(connectTimeout is 25 s)"


def test_those_that_were_given() -> None:
    error = BrokerUnavailable(["one:9092", "two:9092"], "Connection refused; no connection within 10000 ms")

    assert str(NotReached("one:9092,two:9092", 25_000, error)) == (
        "no broker answered at one:9092,two:9092: Connection refused; no connection within 10000 ms " + OPTION
    )


def test_those_by_which_brokers_call_themselves() -> None:
    for error in (BrokerUnavailable(["kafka:909"], "unknown"), ConnectionLost("kafka:909", "unknown")):
        told = str(NotReached("kafka:9092", 25_000, error))

        assert told.startswith("no broker answered at kafka:909 (advertised by kafka:9092): ")


def test_a_cluster_that_did_not_answer_has_no_address_of_its_own() -> None:
    error = RequestTimedOut("LIST_OFFSETS", "the cluster", 25_000)

    assert str(NotReached("one:9092", 25_000, error)) == (
        "no broker answered at one:9092: LIST_OFFSETS: no response from the cluster within 25000 ms " + OPTION
    )


def test_bootstrap_servers_are_compared_as_they_are_meant() -> None:
    assert addresses_of("PLAINTEXT://one:9092, two:9092,[::1]:9092") == {"one:9092", "two:9092", "[::1]:9092"}
