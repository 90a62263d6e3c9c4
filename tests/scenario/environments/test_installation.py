"""Installing with pip on a machine without a compiler, and uninstalling again.

pip fetches what the build and the package need: it takes its time, and a network.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak

CHECKOUT = Path(__file__).parents[3]
TIMEOUT_S = 600.0
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "c99", "x86_64-linux-gnu-gcc")
# What a build copies from a checkout; everything else may be large, or of an earlier build.
SOURCES = ("src", "pyproject.toml", "setup.py", "README.md", "LICENSE")

ROUND_TRIP = """
from barnabas.testing import Broker
with Broker(topics=["orders"]) as broker:
    with broker.producer() as producer:
        producer.send("orders", b"one").result(30)
    print(broker.wait_for_records("orders")[0].value)
"""


class Machine:
    """A virtual environment, with programs on its PATH as we like them."""

    def __init__(self, root: Path) -> None:
        self.tools = root / "tools"
        self.tools.mkdir()
        for tool in ("ls", "sh", "uname", "env"):
            (self.tools / tool).symlink_to(str(shutil.which(tool)))
        self.root = root / "venv"
        # A C compiler is looked for by the name that Python itself was built with, wherever that is.
        compiler = Path(sysconfig.get_config_var("CC").split()[0])
        assert not compiler.is_absolute(), f"{compiler} would be found without a PATH"
        self.environment = {
            "HOME": str(root),
            "PATH": str(self.tools),
            **{name: os.environ[name] for name in os.environ if re.match(r"PIP_|SSL_|https?_proxy", name)},
        }
        self.run(sys.executable, "-m", "venv", str(self.root))

    def run(self, *words: str, **more: str) -> str:
        done = subprocess.run(
            words,
            env={**self.environment, **more},
            cwd=self.tools,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, *words: str, **more: str) -> str:
        return self.run(str(self.root / "bin" / "python"), *words, **more)

    def files(self) -> set[str]:
        """Everything that is installed, without what Python compiles when it imports."""
        found = (path.relative_to(self.root) for path in self.root.rglob("*"))
        return {str(path) for path in found if "__pycache__" not in path.parts}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the checkout, in which nothing has been built."""
    copy = tmp_path / "source"
    copy.mkdir()
    for name in SOURCES:
        if (CHECKOUT / name).is_dir():
            leave_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")
            shutil.copytree(CHECKOUT / name, copy / name, ignore=leave_out)
        else:
            shutil.copyfile(CHECKOUT / name, copy / name)
    return copy


@pytest.mark.parametrize("why", ["no compiler", "BARNABAS_COMPILE=0"])
def test_it_is_installed_as_plain_python_and_works(why: str, machine: Machine, source: Path) -> None:
    if why == "no compiler":
        assert [one for one in COMPILERS if shutil.which(one, path=str(machine.tools))] == []
        machine.python("-m", "pip", "install", "-q", str(source))
    else:
        machine.environment["PATH"] = os.environ["PATH"]
        machine.python("-m", "pip", "install", "-q", str(source), BARNABAS_COMPILE="0")

    assert "kernels: interpreted" in machine.run(str(machine.root / "bin" / "barnabas"), "version")
    assert machine.python("-c", ROUND_TRIP) == "b'one'\n"


def test_uninstalling_leaves_nothing(machine: Machine, source: Path) -> None:
    """Compiled, if there is a compiler: then there are extensions to leave behind."""
    machine.environment["PATH"] = os.environ["PATH"]
    dependencies = tomllib.loads((source / "pyproject.toml").read_text())["project"]["dependencies"]
    machine.python("-m", "pip", "install", "-q", *dependencies)
    before = machine.files()
    machine.python("-m", "pip", "install", "-q", str(source))
    assert machine.python("-c", ROUND_TRIP) == "b'one'\n"
    installed = machine.files() - before
    assert "bin/barnabas" in installed
    has_compiler = any(shutil.which(one) for one in COMPILERS)
    assert any(name.endswith(".so") for name in installed) == has_compiler

    machine.python("-m", "pip", "uninstall", "-q", "-y", "barnabas")

    assert machine.files() == before
