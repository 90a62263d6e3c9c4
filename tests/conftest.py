"""Says, and checks, whether the kernels under test are compiled; settles hypothesis, Java and Spark.

BARNABAS_KERNELS=compiled|interpreted is what the Makefile asks for: a run that silently tested the
other kind would prove nothing.
"""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from barnabas.base.kernels import compiled_kernels
from barnabas.base.structured_log import log_to
from support.scale import is_soak
from support.spark.home import lay_out

PROPERTY_TESTS = Path(__file__).parent / "property"

# How long one example takes says more about the machine than about the code. A failure prints the line that
# replays it.
settings.register_profile(
    "barnabas", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", settings.get_profile("barnabas"), max_examples=2000)
settings.load_profile("soak" if is_soak() else "barnabas")

# What tests start of Java ends before its second compiler has earned what it costs: a third of all the time
# of a Spark that lives for seconds. Benchmarks do not come by here.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_report_header() -> str:
    kernels = compiled_kernels()
    return f"kernels: {sum(kernels.values())} of {len(kernels)} compiled"


def pytest_configure(config: pytest.Config) -> None:
    # A shell without job control has its background jobs ignore Ctrl-C, and every program that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    home = TemporaryDirectory(prefix="barnabas-spark-home-")
    config.add_cleanup(home.cleanup)
    # Workers of this run find it in the environment.
    lay_out(Path(home.name))
    wanted = os.environ.get("BARNABAS_KERNELS")
    if wanted is None:
        return
    kernels = compiled_kernels()
    wrong = [name for name, compiled in kernels.items() if compiled != (wanted == "compiled")]
    if wrong:
        raise pytest.UsageError(f"kernels are to be {wanted}, but these are not: {', '.join(wrong)}")


# Before pytest deselects by marks.
@pytest.fixture(autouse=True)
def _no_log_handler_is_left() -> Iterator[None]:
    """Commands that run in this process send the log to stderr, which the test has replaced by a file."""
    root = logging.getLogger()
    level = root.level
    yield
    left = [handler for handler in root.handlers if type(handler).__module__ == log_to.__module__]
    for handler in left:
        root.removeHandler(handler)
    if left:
        root.setLevel(level)
        logging.captureWarnings(False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest tests first, so that no worker has one left when the others are done."""
    for item in items:
        if PROPERTY_TESTS in item.path.parents:
            item.add_marker(pytest.mark.scaled)
    items.sort(key=lambda one: one.get_closest_marker("long") is None)
