"""What an import contract cannot see: broker code throws no dice of its own, opens no files, and asks nobody
for the time. Everything of that kind is handed in, so that the simulator can hand in its own.
"""

import ast
from pathlib import Path

import pytest

import barnabas

SOURCE = Path(barnabas.__file__).parent
ROOMS = ("storage", "raft", "metadata", "controller", "replication", "coordinators", "server")
FILES = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
# The client waits by its loop's time, which is the simulator's there; no module may import `time`.
CLIENT = SOURCE / "client"
CLIENT_FILES = [path for path in sorted(CLIENT.rglob("*.py")) if "blocking" not in path.parts]
# The ones who have the files and the dice: the ports' other side.
OUTSIDE = {SOURCE / "storage" / "disk.py", CLIENT / "ports.py"}
CALLS = {"open", "exec", "eval"}
ATTRIBUTES = {
    "to_thread",
    "run_in_executor",
    "SystemRandom",
    "urandom",
    "monotonic",
    "perf_counter",
    "time_ns",
    "time",
    "utcnow",
    "today",
}


def offences(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found += [
                    f"import {one.name}" for one in names if one.name in ("random", "secrets", "datetime")
                ]
            case ast.ImportFrom(module="random", names=names):
                found += [f"from random import {one.name}" for one in names if one.name != "Random"]
            case ast.ImportFrom(module=("secrets" | "datetime") as module):
                found.append(f"from {module}")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                found.append(f"line {node.lineno}: {name}()")
            case ast.Call(func=ast.Name(id="Random")):
                found.append(f"line {node.lineno}: dice of its own")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="wait_for")):
                # Python 3.11's swallows a cancellation that comes together with the result.
                found.append(f"line {node.lineno}: wait_for(), use timeout()")
            case ast.Call(func=ast.Attribute(attr=name)) if name in ATTRIBUTES:
                found.append(f"line {node.lineno}: .{name}()")
    return found


def test_the_rooms_have_files() -> None:
    assert len(FILES) > 150
    assert len(CLIENT_FILES) > 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_taken_from_the_machine(path: Path) -> None:
    if path not in OUTSIDE:
        assert offences(ast.parse(path.read_text())) == []


@pytest.mark.parametrize("path", CLIENT_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_but_the_time_of_its_loop_is_taken_by_the_client(path: Path) -> None:
    if path not in OUTSIDE:
        found = offences(ast.parse(path.read_text()))
        assert [each for each in found if not each.endswith(": .time()")] == []


@pytest.mark.parametrize(
    "text",
    [
        "import random\n",
        "from random import choice\n",
        "open('x')\n",
        "Random(1)\n",
        "loop.time()\n",
        "asyncio.to_thread(f)\n",
        "import secrets\n",
    ],
)
def test_forbidden_calls_and_imports_are_found(text: str) -> None:
    assert offences(ast.parse(text)) != []
