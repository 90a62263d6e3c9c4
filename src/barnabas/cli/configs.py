"""`barnabas configs`: describe and alter settings of topics, brokers, groups and others: kafka-configs.sh.

Flags, output and exit codes are those of Kafka's tool. If the broker does not support an entity type (quotas,
groups, client metrics, SCRAM credentials), its error is printed. --bootstrap-controller is not supported: our
client connects to brokers only. Entities are sorted by name; Kafka's tool prints them in hash map order.
"""

from typing import Final

from barnabas.base.errors import BarnabasError
from barnabas.cli.config import changes, entities
from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import (
    ToolFailed,
    add_json_option,
    admin_settings,
    note,
    reason,
    run_async,
    started,
)

__all__ = ["Parser", "arguments", "run"]

_QUOTAS: Final = frozenset((entities.USERS, entities.CLIENTS, entities.IPS))


def arguments(parser: Parser) -> None:
    parser.about = (
        "describe and alter settings of topics, clients, users, brokers, ips, client metrics and groups"
    )
    parser.option("bootstrap-server", "bootstrap servers: HOST:PORT,...", value="host:port,...")
    parser.option("bootstrap-controller", "not supported: use --bootstrap-server", value="host:port,...")
    parser.option("command-config", "properties file with client settings", value="file")
    parser.flag("alter", "alter settings")
    parser.flag("describe", "describe settings")
    parser.flag("all", "with --describe: all settings, not only dynamic ones")
    entities.add_options(parser)
    parser.option(
        "add-config",
        "settings to add: NAME=VALUE,...; a value that contains commas goes into brackets: NAME=[V1,V2]",
        value="name=value,...",
    )
    parser.option("add-config-file", "properties file with settings to add", value="file")
    parser.option("delete-config", "names of settings to remove; repeatable", value="name,...", many=True)
    add_json_option(parser)


def run(options: Options) -> int:
    parser = options.parser
    if options.alter == options.describe:
        parser.fail("Command must include exactly one action: --describe, --alter", usage=True)
    parser.refuse_with(options, "describe", ["add-config", "delete-config"])
    try:
        meant = entities.Entities(options)
        entities.check(options, meant)
        if options.alter:
            changes.check(options)
        return run_async(_main(options, meant))
    except BarnabasError as error:
        # Kafka adds its own command line and a stack trace to some of these errors.
        note(reason(error))
        return 1


async def _main(options: Options, meant: entities.Entities) -> int:
    from barnabas.cli.config import quotas, resources
    from barnabas.client.admin.admin import Admin

    if options.bootstrap_controller is not None:
        raise ToolFailed(
            "--bootstrap-controller is not supported: this client connects to brokers, which forward requests"
            " to the controller; use --bootstrap-server"
        )
    added, deleted = changes.to_add(options), changes.to_delete(options)
    family = quotas if meant.type in _QUOTAS else resources
    async with started(Admin(admin_settings(options))) as admin:
        if options.alter:
            await family.alter(admin, meant, added, deleted)
            _print_done(meant, as_json=options.json)
        else:
            await family.describe(admin, meant, everything=options.all, as_json=options.json)
    return 0


def _print_done(meant: entities.Entities, *, as_json: bool) -> None:
    from barnabas.cli.tool import print_json

    if as_json:
        print_json({"altered": dict(zip(meant.types, meant.names, strict=True))})
    elif meant.name:
        print(f"Completed updating config for {meant.singular} {meant.name}.")
    else:
        print(f"Completed updating default config for {meant.type} in the cluster.")
