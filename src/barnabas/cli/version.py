"""`barnabas version`: print the version, and whether the kernels are compiled."""

import argparse
import json
import platform

from barnabas import __version__
from barnabas.base.kernels import compiled_kernels


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    kernels = compiled_kernels()
    if options.json:
        print(json.dumps({"version": __version__, "python": platform.python_version(), "kernels": kernels}))
        return 0
    print(f"barnabas {__version__}")
    print(f"python: {platform.python_implementation()} {platform.python_version()}")
    print(f"kernels: {describe_kernels(kernels)}")
    return 0


def describe_kernels(kernels: dict[str, bool]) -> str:
    if all(kernels.values()):
        return f"compiled ({len(kernels)} modules)"
    if not any(kernels.values()):
        return "interpreted, which is slower; install with a C compiler to compile them"
    plain = ", ".join(name for name, compiled in kernels.items() if not compiled)
    return f"partly compiled, interpreted: {plain}"
