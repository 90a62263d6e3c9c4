"""Merge files, properties and options into the settings of a client, with Kafka's precedence.

--command-property overrides a file, and a given option overrides both. The default of an option only applies
if nothing sets its setting. The perf tools use this module, too.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.cli.option_parser import Options, Parser
from barnabas.cli.tool import note, read_properties

# Kafka's tools override these settings with their own classes. Ours read and write bytes.
_IGNORED: Final = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")


def add_stream_options(parser: Parser, each: str) -> None:
    """Add the options of the client, and --json, which prints one object for `each`."""
    parser.option("bootstrap-server", "REQUIRED: bootstrap servers: HOST:PORT,...", value="host:port,...")
    parser.option("command-config", "properties file with client settings", value="file")
    parser.option(
        "command-property", "client setting; overrides the file; repeatable", value="name=value", many=True
    )
    parser.flag("json", f"print one JSON object per line for {each}")


def key_values(texts: Iterable[str]) -> dict[str, str]:
    """Parse NAME=VALUE texts. As in Kafka's tools, empty texts are skipped, and `=` is optional."""
    found: dict[str, str] = {}
    for text in texts:
        if text:
            name, _, value = text.partition("=")
            found[name] = value
    return found


def given_settings(file: str | None, properties: Iterable[str]) -> dict[str, object]:
    """Return the settings of a file and properties, without those that the tool overrides."""
    found: dict[str, object] = dict(read_properties(file)) if file is not None else {}
    found.update(key_values(properties))
    for name in _IGNORED:
        found.pop(name, None)
    return found


def merge_options(settings: dict[str, object], options: Options, names: Mapping[str, str]) -> None:
    """Add options to settings. `names`: setting -> option. A default does not override a setting."""
    for setting, option in names.items():
        if options.given(option) or setting not in settings:
            settings[setting] = getattr(options, options.parser.option_named(option).attribute)


def check_bootstrap(options: Options) -> None:
    """End the program with the usage if --bootstrap-server is invalid, with Kafka's messages."""
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
    """Print a warning to stdout, as Kafka's tool does; with --json to stderr."""
    if options.json:
        note(text)
    else:
        print(text)
