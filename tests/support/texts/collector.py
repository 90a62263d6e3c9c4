"""Collect the texts of the product that people read, from the syntax trees of its modules.

A text has a kind: help, log, error, message (stderr), setting or docstring. The values of an f-string
are replaced by `{}`. rules.py says which patterns no text of a kind may have.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

LOG_METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
HELP_KEYWORDS = frozenset({"help", "description", "epilog"})
# Methods of cli/option_parser.py whose last positional argument is a help text.
OPTION_METHODS = frozenset({"flag", "option"})
# Help texts that are assigned: `parser.about = "..."`, and the list of commands in cli/main.py.
HELP_NAMES = frozenset({"about", "COMMANDS"})
# Calls that print to stderr or report an invalid command line.
MESSAGE_CALLS = frozenset({"note", "warn", "fail", "fail_value"})
PLACEHOLDER = "{}"


class Kind(StrEnum):
    HELP = "help"
    LOG = "log"
    ERROR = "error"
    MESSAGE = "message"
    SETTING = "setting"
    DOCSTRING = "docstring"


@dataclass(frozen=True, slots=True)
class Text:
    path: str
    line: int
    kind: Kind
    words: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} {self.words!r}"


def texts_below(folder: Path) -> list[Text]:
    """Return the texts of every module below the folder."""
    return [
        text
        for path in sorted(folder.rglob("*.py"))
        for text in texts_of(path.read_text(), str(path.relative_to(folder)))
    ]


def texts_of(source: str, path: str) -> list[Text]:
    """Return the texts of one module in the order of its lines, each once."""
    tree = ast.parse(source)
    found = {*_calls_and_raises(tree, path), *_docstrings(tree, path)}
    if "setting" in path:
        taken = {text.line for text in found}
        found |= {text for text in _declared_texts(tree, path) if text.line not in taken}
    return sorted(found, key=lambda text: (text.line, text.kind))


def _calls_and_raises(tree: ast.AST, path: str) -> Iterator[Text]:
    for node in ast.walk(tree):
        match node:
            case ast.Raise(exc=ast.Call() as raised):
                yield from _texts(Kind.ERROR, _values(raised), path)
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__")):
                yield from _texts(Kind.ERROR, _values(node), path)
            case ast.Call() as call:
                yield from _of_call(call, path)
            case ast.Assign(targets=[target], value=value) if _name(target) in HELP_NAMES:
                yield from _texts(Kind.HELP, value.values if isinstance(value, ast.Dict) else [value], path)


def _of_call(call: ast.Call, path: str) -> Iterator[Text]:
    name = _name(call.func)
    is_method = isinstance(call.func, ast.Attribute)
    if is_method and name in LOG_METHODS and "log" in _name(call.func.value).lower():  # type: ignore[attr-defined]
        yield from _texts(Kind.LOG, call.args[:1], path)
    elif is_method and name in OPTION_METHODS:
        yield from _texts(Kind.HELP, call.args[-1:], path)
    elif name in MESSAGE_CALLS or (name == "print" and any(_is_to_stderr(each) for each in call.keywords)):
        yield from _texts(Kind.MESSAGE, call.args, path)
    elif any(_is_error_code(each) for each in call.args):
        yield from _texts(Kind.ERROR, _values(call), path)
    yield from _texts(Kind.HELP, [each.value for each in call.keywords if each.arg in HELP_KEYWORDS], path)
    messages = [each.value for each in call.keywords if each.arg in ("message", "error_message")]
    yield from _texts(Kind.ERROR, messages, path)


def _docstrings(tree: ast.Module, path: str) -> Iterator[Text]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = ast.get_docstring(node)
            if words is not None:
                yield Text(path, node.body[0].lineno, Kind.DOCSTRING, words)


def _declared_texts(tree: ast.AST, path: str) -> Iterator[Text]:
    """The sentences that modules of settings pass to declarations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            sentences = [each for each in _values(node) if " " in (_words(each) or "").strip()]
            yield from _texts(Kind.SETTING, sentences, path)


def _texts(kind: Kind, nodes: list[ast.expr], path: str) -> Iterator[Text]:
    for node in nodes:
        for each in _branches(node):
            words = _words(each)
            if words is not None:
                yield Text(path, each.lineno, kind, words)


def _branches(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _branches(node.body)
        yield from _branches(node.orelse)
    else:
        yield node


def _words(node: ast.expr) -> str | None:
    """Return the text of an expression, with {} for values that are computed; None if it is no text."""
    match node:
        case ast.Constant(value=str(words)):
            return words
        case ast.JoinedStr(values=parts):
            return "".join(_words(part) or PLACEHOLDER for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _words(left), _words(right)
            return (
                None if first is None and second is None else (first or PLACEHOLDER) + (second or PLACEHOLDER)
            )
    return None


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords)]


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_to_stderr(keyword: ast.keyword) -> bool:
    return keyword.arg == "file" and _name(keyword.value) == "stderr"


def _is_error_code(node: ast.expr) -> bool:
    """Whether the node is `ErrorCode.NAME`: the text beside it goes to a client."""
    return isinstance(node, ast.Attribute) and _name(node.value) == "ErrorCode"
