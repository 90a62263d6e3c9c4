"""Options of a tool, read as Kafka's tools read theirs: by the habits of joptsimple, not those of argparse.

`--name value`, `--name=value` and `-name value` are the same. An option that takes a value takes the next
word whatever it looks like, so that `--time -1` works; one whose value is optional takes it unless it looks
like an option. Names are not abbreviated, unless a tool says so. An option that was given twice is an error
if it may have only one value. What is wrong is said on stderr and ends the program with 1, as in Kafka's
tools. --help is no error here: it goes to stdout and ends with 0.

Two things are stricter than in Kafka's tools, where they are dropped without a word: a value for an option
that takes none is refused (`--if-exists=false`), and a word that belongs to no option is warned about.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

# The release whose tools these are, which is what their --version prints.
KAFKA_VERSION: Final = "4.3.0"
INT_MAX: Final = 0x7FFFFFFF
LONG_MAX: Final = 0x7FFFFFFFFFFFFFFF
_COLUMN_MAX: Final = 38
_LINE_MAX: Final = 100
_DIGITS_MAX: Final = 19


class Option(NamedTuple):
    """One option, under all of its names; the first is the one that it is called by."""

    names: tuple[str, ...]
    text: str
    # What its value is, for the help. Empty: it takes none.
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
        """As joptsimple calls it in its messages."""
        return self.names[0] if len(self.names) == 1 else f"[{', '.join(sorted(self.names, key=len))}]"


class Options:
    """What was found: one attribute an option, with _ for -. Those that were not given have their default."""

    def __init__(self, parser: "Parser") -> None:
        self.parser = parser
        # The names of what was given, in the order of the command line.
        self.order: list[str] = []
        self._given: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no option {name}")

    def given(self, name: str) -> bool:
        """Whether it is on the command line, under any of its names."""
        return self.parser.option_named(name).attribute in self._given

    def take(self, option: Option, value: Any) -> None:
        if option.many and option.attribute in self._given:
            getattr(self, option.attribute).append(value)
        else:
            setattr(self, option.attribute, [value] if option.many else value)
        self._given.add(option.attribute)
        self.order.append(option.names[0])


class Parser:
    """Filled by flag() and option(); parse_args() then reads a command line or ends the program."""

    # Whether the beginning of a name is enough if no other begins so. In Kafka's tools it is not.
    abbreviations: bool = False
    # What a message without the usage begins with; some of Kafka's tools have such a thing.
    prefix: str = ""

    def __init__(self, *, prog: str, description: str) -> None:
        self.prog = prog
        # What the help begins with. A tool says more than its line in the list of commands.
        self.about = description
        self._options: dict[str, Option] = {}
        self.flag("help", "print this help")
        self.flag("version", "print the Kafka version that this tool matches")

    def flag(self, *names: str, hidden: bool = False) -> None:
        """flag("list", "All topics."): names, and the help as the last. True or False in the options."""
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
        """option("topic", "The topic.", value="topic"): names, and the help as the last.

        `convert` raises ValueError for what it cannot read. With `many` it may be given several times and is
        a list ([] without). With `value_optional` it is "" if no value follows.
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
            begin_so = {one.names: one for key, one in self._options.items() if key.startswith(name)}
            found = next(iter(begin_so.values())) if len(begin_so) == 1 else None
        return found

    def require(self, options: Options, *names: str) -> None:
        """End the program with the usage if one of them is missing."""
        for name in names:
            if not options.given(name):
                self.fail(f'Missing required argument "[{name}]"', usage=True)

    def refuse_with(self, options: Options, used: str, others: Iterable[str]) -> None:
        """End the program with the usage if `used` was given and one of the others too."""
        for other in others:
            if options.given(used) and options.given(other):
                self.fail(f'Option "[{used}]" can\'t be used with option "[{other}]"', usage=True)

    def fail(self, message: str, *, usage: bool = False) -> NoReturn:
        """A command line that cannot be: say so and end the program, with 1 as Kafka's tools."""
        print(message if usage else f"{self.prefix}{message}", file=sys.stderr)
        if usage:
            self.print_help(sys.stderr, about=False)
        raise SystemExit(1)

    def fail_value(self, message: str) -> NoReturn:
        """The value of an option cannot be. A tool whose model says that elsewhere brings its own."""
        self.fail(message)

    def print_help(self, to: Any, *, about: bool = True) -> None:
        # Imported here because the help is not what a tool is started for.
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
    """One command line, word by word."""

    def __init__(self, parser: Parser, words: list[str], options: Options) -> None:
        self._parser = parser
        self._words = words
        self._options = options
        self._at = 0

    def read(self) -> list[str]:
        """Take every option. What belongs to none of them."""
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
        # `--name= value` is `--name value` to joptsimple.
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
    """A Java Integer."""
    return _whole(text, INT_MAX)


def long(text: str) -> int:
    """A Java Long."""
    return _whole(text, LONG_MAX)


def _whole(text: str, most: int) -> int:
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal()) or len(digits.lstrip("0")) > _DIGITS_MAX:
        raise ValueError(f"{text!r} is not a whole number")
    value = int(text)
    if not -most - 1 <= value <= most:
        raise ValueError(f"{value} is out of range ({-most - 1} to {most})")
    return value
