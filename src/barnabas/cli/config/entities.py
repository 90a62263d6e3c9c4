"""The entities of `barnabas configs`: their types, their names, and checks of both. Pure.

An entity is named by --entity-type with --entity-name or --entity-default, or by a specific option such as
--topic or --broker-defaults. Checks and messages are those of kafka-configs.sh, in its order.
"""

import re
from collections import Counter
from typing import Final, NoReturn

from barnabas.cli.option_parser import Options, Parser, integer
from barnabas.cli.tool import ToolFailed

TOPICS, CLIENTS, USERS, BROKERS, IPS = "topics", "clients", "users", "brokers", "ips"
METRICS, GROUPS, LOGGERS = "client-metrics", "groups", "broker-loggers"
TYPES: Final = (TOPICS, CLIENTS, USERS, BROKERS, IPS, METRICS, GROUPS, LOGGERS)
# The name of the default entity of a type.
DEFAULT: Final = ""

_NAMED: Final = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": LOGGERS,
    "ip": IPS,
    "client-metrics": METRICS,
    "group": GROUPS,
}
_DEFAULTS: Final = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}
_HAVE_DEFAULTS: Final = frozenset(_DEFAULTS.values())
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]+")
_HOST: Final = re.compile(r"[A-Za-z0-9.:-]{1,253}")


def add_options(parser: Parser) -> None:
    parser.option("entity-type", f"entity type: {', '.join(TYPES)}", value="type", many=True)
    parser.option("entity-name", "entity name, such as a topic or a broker id", value="name", many=True)
    parser.flag("entity-default", "default settings of clients, users, brokers or ips")
    for name, kind in _NAMED.items():
        parser.option(name, f"short for --entity-type {kind} --entity-name NAME", value="name")
    for name, kind in _DEFAULTS.items():
        parser.flag(name, f"short for --entity-type {kind} --entity-default")


class Entities:
    """The entities of a command line: types in their order, and at most as many names."""

    def __init__(self, options: Options) -> None:
        names = iter(options.entity_name)
        by_type = [given for given in options.order if given in ("entity-name", "entity-default")]
        self.types: list[str] = [*options.entity_type]
        self.types += [kind for name, kind in {**_NAMED, **_DEFAULTS}.items() if options.given(name)]
        self.names = [next(names) if given == "entity-name" else DEFAULT for given in by_type]
        self.names += [getattr(options, name.replace("-", "_")) for name in _NAMED if options.given(name)]
        self.names += [DEFAULT for name in _DEFAULTS if options.given(name)]

    @property
    def type(self) -> str:
        return self.types[0]

    @property
    def singular(self) -> str:
        return singular(self.type)

    @property
    def name(self) -> str | None:
        return self.names[0] if self.names else None


def singular(kind: str) -> str:
    return kind.removesuffix("s")


def check(options: Options, entities: Entities) -> None:
    """Raise ToolFailed if the combination of entities and actions is invalid."""
    _check_types(options, entities)
    _check_names(entities)
    listed = ",".join(entities.types)
    has_name = any(entities.names)
    may_be_default = bool(_HAVE_DEFAULTS & set(entities.types))
    if options.describe:
        if options.entity_default and not may_be_default:
            _refuse(f"--entity-default must not be specified with --describe of {listed}")
        if LOGGERS in entities.types and not has_name:
            _refuse(f"An entity name must be specified with --describe of {listed}")
        return
    if may_be_default and not entities.names:
        _refuse(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or"
            " ips"
        )
    if not may_be_default and not has_name:
        _refuse(f"An entity name must be specified with --alter of {listed}")
    if len(entities.types) != len(entities.names):
        _refuse("An entity name must be specified for every entity type")


def _check_types(options: Options, entities: Entities) -> None:
    types = entities.types
    twice = [kind for kind, count in Counter(types).items() for _ in range(count - 1)]
    if twice:
        _refuse(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if not options.given("bootstrap-server") and not options.given("bootstrap-controller"):
        _refuse("Either --bootstrap-server or --bootstrap-controller must be specified.")
    for kind in types:
        if kind not in TYPES:
            _refuse(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)}"
                " with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        _refuse("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        _refuse("Only 'users' and 'clients' entity types may be specified together")
    generic = any(map(options.given, ("entity-name", "entity-type", "entity-default")))
    if generic and any(map(options.given, (*_NAMED, *_DEFAULTS))):
        _refuse("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if options.given("bootstrap-server") and options.given("bootstrap-controller"):
        _refuse("Only one of --bootstrap-server or --bootstrap-controller can be specified")


def _check_names(entities: Entities) -> None:
    kind = entities.type
    if len(entities.names) > len(entities.types):
        _refuse("More entity names specified than entity types")
    for name in filter(None, entities.names):
        if kind in (BROKERS, LOGGERS) and not _is_id(name):
            _refuse(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
        if kind == TOPICS and _TOPIC.fullmatch(name) is None:
            _refuse(
                f"Topic name is invalid: '{name}' contains one or more characters other than ASCII"
                " alphanumerics, '.', '_' and '-'"
            )
        if kind == IPS and _HOST.fullmatch(name) is None:
            _refuse(f"The entity name for {kind} must be a valid IP or resolvable host, but it is: {name}")


def _is_id(text: str) -> bool:
    try:
        integer(text)
    except ValueError:
        return False
    return True


def _refuse(why: str) -> NoReturn:
    raise ToolFailed(why)
