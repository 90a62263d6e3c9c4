"""From options to a client's settings: files, properties and options, by Kafka's order of which wins.

A file comes first, then --command-property, then an option that was given, then the option's default if
nothing else said it. The tools for measuring take theirs from here too.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import note, read_properties

# Kafka's tools put their own in the place of these. Ours read and write bytes anyway.
_OWN: Final = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")


def add_stream_options(parser: Parser, each: str) -> None:
    """Where the cluster is, the client's settings, and --json: one object for `each`."""
    parser.option("bootstrap-server", "REQUIRED: bootstrap servers: HOST:PORT,...", value="host:port,...")
    parser.option("command-config", "properties file with client settings", value="file")
    parser.option(
        "command-property", "client setting; overrides the file; repeatable", value="name=value", many=True
    )
    parser.flag("json", f"print one JSON object per line for {each}")


def key_values(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE each. As in Kafka's tools an empty one is nothing, and without `=` the value is empty."""
    found: dict[str, str] = {}
    for text in texts:
        if text:
            name, _, value = text.partition("=")
            found[name] = value
    return found


def given_settings(file: str | None, properties: Iterable[str]) -> dict[str, object]:
    """What a file and properties say, without what the tool decides itself."""
    found: dict[str, object] = dict(read_properties(file)) if file is not None else {}
    found.update(key_values(properties))
    for name in _OWN:
        found.pop(name, None)
    return found


def merge_options(settings: dict[str, object], options: Options, names: Mapping[str, str]) -> None:
    """`names`: setting -> option. An option that was given wins; its default only fills a gap."""
    for setting, option in names.items():
        if options.given(option) or setting not in settings:
            settings[setting] = getattr(options, options.parser.option_named(option).attribute)


def check_bootstrap(options: Options) -> None:
    """End the program with the usage if --bootstrap-server is none, in Kafka's words."""
    from barnabas.base.settings import InvalidSetting
    from barnabas.client.settings import split_address

    text = options.bootstrap_server
    if text is None or not text.strip():
        options.parser.fail("Error while validating the bootstrap address\n", usage=True)
    try:
        for address in text.split(","):
            split_address(address.strip())
    except InvalidSetting:
        options.parser.fail("Please provide valid host:port like host1:9091,host2:9092\n", usage=True)


def warn(options: Options, text: str) -> None:
    """A warning that Kafka's tool prints to stdout. With --json that is for results alone."""
    if options.json:
        note(text)
    else:
        print(text)
