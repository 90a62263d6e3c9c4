"""Parse the options of a tool as Kafka's tools do, by the rules of joptsimple instead of argparse.

`--name value`, `--name=value` and `-name value` are the same. An option that takes a value takes the next
word whatever it looks like, so that `--time -1` works; an optional value is taken unless it looks like an
option. Names cannot be abbreviated, unless a tool allows it. Repeating an option that takes one value is an
error. Errors go to stderr, and the exit code is 1, as in Kafka's tools. --help goes to stdout and exits
with 0.

Two mistakes that Kafka's tools ignore silently are reported: a value for an option that takes none
(`--if-exists=false`) is an error, and a word that belongs to no option causes a warning.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

# The Kafka release that the tools match; --version prints it.
KAFKA_VERSION: Final = "4.3.0"
INT_MAX: Final = 0x7FFFFFFF
LONG_MAX: Final = 0x7FFFFFFFFFFFFFFF
_COLUMN_MAX: Final = 38
_LINE_MAX: Final = 100
_DIGITS_MAX: Final = 19


class Option(NamedTuple):
    """One option with all of its names; the first is the main one."""

    names: tuple[str, ...]
    text: str
    # Placeholder of the value in the help. Empty: the option takes no value.
    value: str
    convert: Callable[[str], Any]
    default: Any
    many: bool
    value_optional: bool
    required: bool
    hidden: bool

    @property
    def attribute(self) -> str:
        return self.names[0].replace("-", "_")

    @property
    def shown(self) -> str:
        """The name of the option in the messages of joptsimple."""
        return self.names[0] if len(self.names) == 1 else f"[{', '.join(sorted(self.names, key=len))}]"


class Options:
    """The parsed options: one attribute each, with _ for -. An option that is not given has its default."""

    def __init__(self, parser: "Parser") -> None:
        self.parser = parser
        # Names of the given options, in the order of the command line.
        self.order: list[str] = []
        self._given: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no option {name}")

    def given(self, name: str) -> bool:
        """Whether the option is on the command line, under any of its names."""
        return self.parser.option_named(name).attribute in self._given

    def take(self, option: Option, value: Any) -> None:
        if option.many and option.attribute in self._given:
            getattr(self, option.attribute).append(value)
        else:
            setattr(self, option.attribute, [value] if option.many else value)
        self._given.add(option.attribute)
        self.order.append(option.names[0])


class Parser:
    """Declare options with flag() and option(); parse_args() reads a command line or ends the program."""

    # Whether unambiguous prefixes of names are accepted. Kafka's tools do not accept them.
    abbreviations: bool = False
    # Prefix of messages without usage; some of Kafka's tools have one.
    prefix: str = ""

    def __init__(self, *, prog: str, description: str) -> None:
        self.prog = prog
        # First line of the help; by default the line in the list of commands.
        self.about = description
        self._options: dict[str, Option] = {}
        self.flag("help", "print this help")
        self.flag("version", "print the Kafka version that this tool matches")

    def flag(self, *names: str, hidden: bool = False) -> None:
        """flag("list", "all topics"): names, then the help text. The option is True or False."""
        self._add(names, value="", convert=str, default=False, hidden=hidden)

    def option(
        self,
        *names: str,
        value: str = "text",
        convert: Callable[[str], Any] = str,
        default: Any = None,
        many: bool = False,
        value_optional: bool = False,
        required: bool = False,
        hidden: bool = False,
    ) -> None:
        """option("topic", "topic name", value="topic"): names, then the help text.

        `convert` raises ValueError for an invalid value. With `many` the option is repeatable and its value a
        list ([] by default). With `value_optional` the value is "" if none follows.
        """
        self._add(
            names,
            value=value,
            convert=convert,
            default=[] if many and default is None else default,
            many=many,
            value_optional=value_optional,
            required=required,
            hidden=hidden,
        )

    def _add(
        self,
        words: tuple[str, ...],
        *,
        value: str,
        convert: Callable[[str], Any],
        default: Any,
        many: bool = False,
        value_optional: bool = False,
        required: bool = False,
        hidden: bool = False,
    ) -> None:
        *names, text = words
        option = Option(tuple(names), text, value, convert, default, many, value_optional, required, hidden)
        for name in names:
            assert name not in self._options, f"two options have the name {name}"
            self._options[name] = option

    def option_named(self, name: str) -> Option:
        return self._options[name]

    def parse_args(self, words: Sequence[str]) -> Options:
        options = Options(self)
        for option in self._options.values():
            setattr(options, option.attribute, list(option.default) if option.many else option.default)
        strays = _Reading(self, list(words), options).read()
        if not words or options.help:
            self.print_help(sys.stdout if words else sys.stderr)
            raise SystemExit(0 if words else 1)
        if options.version:
            print(KAFKA_VERSION)
            raise SystemExit(0)
        missing = [
            name for name, option in self._options.items() if option.required and not options.given(name)
        ]
        if missing:
            self.fail(f"Missing required option(s) [{', '.join(missing)}]")
        if strays:
            print(
                f"{self.prog}: arguments ignored, they belong to no option: {' '.join(strays)}",
                file=sys.stderr,
            )
        return options

    def find(self, name: str) -> Option | None:
        found = self._options.get(name)
        if found is None and self.abbreviations and name:
            matching = {one.names: one for key, one in self._options.items() if key.startswith(name)}
            found = next(iter(matching.values())) if len(matching) == 1 else None
        return found

    def require(self, options: Options, *names: str) -> None:
        """End the program with the usage if one of these options is missing."""
        for name in names:
            if not options.given(name):
                self.fail(f'Missing required argument "[{name}]"', usage=True)

    def refuse_with(self, options: Options, used: str, others: Iterable[str]) -> None:
        """End the program with the usage if `used` is combined with one of the others."""
        for other in others:
            if options.given(used) and options.given(other):
                self.fail(f'Option "[{used}]" can\'t be used with option "[{other}]"', usage=True)

    def fail(self, message: str, *, usage: bool = False) -> NoReturn:
        """Report an invalid command line and end the program with 1, as Kafka's tools do."""
        print(message if usage else f"{self.prefix}{message}", file=sys.stderr)
        if usage:
            self.print_help(sys.stderr, about=False)
        raise SystemExit(1)

    def fail_value(self, message: str) -> NoReturn:
        """Report an invalid value. Overridden by tools whose model in Kafka reports it differently."""
        self.fail(message)

    def print_help(self, to: Any, *, about: bool = True) -> None:
        # Imported here to keep the start of a tool fast when no help is printed.
        from textwrap import wrap

        if about:
            print(f"{self.about}\n", file=to)
        shown = sorted({one.names: one for one in self._options.values() if not one.hidden}.values())
        left = ["Option", *map(_heading, shown)]
        width = min(max(map(len, left)), _COLUMN_MAX)
        for name, text in zip(left, ["Description", *(one.text for one in shown)], strict=True):
            lines = wrap(text, _LINE_MAX - width - 2)
            if len(name) > width:
                lines.insert(0, "")
            for line in (
                f"{name if not at else '':<{width}}  {each}" for at, each in enumerate(lines or [""])
            ):
                print(line.rstrip(), file=to)


def _heading(option: Option) -> str:
    names = ", ".join(f"--{name}" if len(name) > 1 else f"-{name}" for name in option.names)
    if not option.value:
        return names
    return f"{names} [{option.value}]" if option.value_optional else f"{names} <{option.value}>"


class _Reading:
    """Reads one command line word by word."""

    def __init__(self, parser: Parser, words: list[str], options: Options) -> None:
        self._parser = parser
        self._words = words
        self._options = options
        self._at = 0

    def read(self) -> list[str]:
        """Take every option; return the words that belong to none."""
        strays: list[str] = []
        while self._at < len(self._words):
            word = self._words[self._at]
            self._at += 1
            if word == "--":
                return strays + self._words[self._at :]
            if _looks_like_an_option(word):
                self._take(word.removeprefix("-").removeprefix("-"))
            else:
                strays.append(word)
        return strays

    def _take(self, word: str) -> None:
        name, equals, value = word.partition("=")
        option = self._parser.find(name)
        if option is None:
            self._parser.fail(f"{name} is not a recognized option")
        if not option.value:
            if equals:
                self._parser.fail(f"Option {option.shown} takes no argument, but was given {value!r}")
            self._options.take(option, True)
            return
        # joptsimple treats `--name= value` as `--name value`.
        text = value or self._next(option)
        if not option.many and self._options.given(option.names[0]):
            self._parser.fail_value(
                f"Found multiple arguments for option {option.shown}, but you asked for only one"
            )
        self._options.take(option, self._converted(option, text))

    def _next(self, option: Option) -> str:
        follows = self._words[self._at] if self._at < len(self._words) else None
        if option.value_optional and (follows is None or _looks_like_an_option(follows)):
            return ""
        if follows is None:
            self._parser.fail(f"Option {option.shown} requires an argument")
        self._at += 1
        return follows

    def _converted(self, option: Option, text: str) -> Any:
        if option.value_optional and not text:
            return text
        try:
            return option.convert(text)
        except ValueError:
            self._parser.fail_value(f"Cannot parse argument '{text}' of option {option.shown}")


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def integer(text: str) -> int:
    """Parse a Java Integer."""
    return _whole(text, INT_MAX)


def long(text: str) -> int:
    """Parse a Java Long."""
    return _whole(text, LONG_MAX)


def _whole(text: str, most: int) -> int:
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal()) or len(digits.lstrip("0")) > _DIGITS_MAX:
        raise ValueError(f"{text!r} is not a whole number")
    value = int(text)
    if not -most - 1 <= value <= most:
        raise ValueError(f"{value} is out of range ({-most - 1} to {most})")
    return value
