"""Entities of a command line of `barnabas configs`, and invalid combinations."""

import pytest

from barnabas.cli import configs
from barnabas.cli.config.entities import Entities, check
from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import ToolFailed

SERVER = ("--bootstrap-server", "a:1")


def read(*words: str) -> Options:
    parser = Parser(prog="barnabas configs", description="")
    configs.arguments(parser)
    return parser.parse_args(words)


def meant(*words: str) -> Entities:
    options = read(*SERVER, *words)
    found = Entities(options)
    check(options, found)
    return found


@pytest.mark.parametrize(
    ("words", "types", "names"),
    [
        ("--describe --topic t", ["topics"], ["t"]),
        ("--describe --entity-type topics", ["topics"], []),
        ("--describe --entity-type topics --entity-name t", ["topics"], ["t"]),
        ("--describe --broker-defaults", ["brokers"], [""]),
        ("--describe --entity-type brokers --entity-default", ["brokers"], [""]),
        ("--alter --user u --client c", ["clients", "users"], ["c", "u"]),
        ("--describe --entity-type users --entity-type clients", ["users", "clients"], []),
        (
            "--alter --entity-type users --entity-default --entity-type clients --entity-name c",
            ["users", "clients"],
            ["", "c"],
        ),
        (
            "--alter --entity-type users --entity-name u --entity-type clients --entity-default",
            ["users", "clients"],
            ["u", ""],
        ),
    ],
)
def test_types_and_names_are_in_the_order_of_the_command_line(
    words: str, types: list[str], names: list[str]
) -> None:
    found = meant(*words.split())

    assert (found.types, found.names) == (types, names)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--describe", "At least one entity type must be specified"),
        (
            "--describe --entity-type nothing",
            "Invalid entity type nothing, the entity type must be one of topics, clients, users, brokers,"
            " ips, client-metrics, groups, broker-loggers with a --bootstrap-server or --bootstrap-controller"
            " argument",
        ),
        ("--describe --topic t --entity-type topics", "Duplicate entity type(s) specified: topics"),
        (
            "--describe --entity-type brokers --entity-type topics",
            "Only 'users' and 'clients' entity types may be specified together",
        ),
        (
            "--describe --entity-type users --client c",
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags",
        ),
        (
            "--describe --broker seven",
            "The entity name for brokers must be a valid integer broker id, but it is: seven",
        ),
        (
            "--describe --topic a/b",
            "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'",
        ),
        (
            "--describe --ip a/b",
            "The entity name for ips must be a valid IP or resolvable host, but it is: a/b",
        ),
        (
            "--describe --entity-type topics --entity-default",
            "--entity-default must not be specified with --describe of topics",
        ),
        (
            "--describe --entity-type broker-loggers",
            "An entity name must be specified with --describe of broker-loggers",
        ),
        (
            "--describe --entity-type topics --entity-name a --entity-name b",
            "More entity names specified than entity types",
        ),
        ("--alter --entity-type topics", "An entity name must be specified with --alter of topics"),
        (
            "--alter --entity-type brokers",
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or"
            " ips",
        ),
        (
            "--alter --entity-type users --entity-name u --entity-type clients",
            "An entity name must be specified for every entity type",
        ),
        (
            "--describe --topic t --bootstrap-controller b:1",
            "Only one of --bootstrap-server or --bootstrap-controller can be specified",
        ),
    ],
)
def test_invalid_entities_are_rejected_with_kafkas_messages(words: str, why: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        meant(*words.split())

    assert str(refused.value) == why


def test_bootstrap_servers_are_required() -> None:
    options = read("--describe", "--topic", "t")

    with pytest.raises(ToolFailed, match=r"^Either --bootstrap-server or --bootstrap-controller must be"):
        check(options, Entities(options))
