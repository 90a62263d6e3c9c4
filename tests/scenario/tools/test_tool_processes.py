"""Tools as processes: start time, signals, and a closed output."""

import os
import signal
import socket
import statistics
import subprocess
import sys
from pathlib import Path

from support.process.our_broker import OurBroker
from support.process.processes import run_to_end, started

# The goal is a start within 150 ms on a quiet machine with compiled kernels. Nearly all of that is CPU time,
# which this test measures because it hardly depends on other load. The limit is twice as much: tests also run
# interpreted, and on slower machines.
START_CPU_MS_MAX = 300
RUNS = 7


def cpu_ms(*words: str) -> float:
    """Return the CPU time of one run. The first run also compiles bytecode."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def test_a_tool_starts_and_ends_quickly(broker: OurBroker) -> None:
    words = ("-m", "barnabas.cli.main", "topics", "--list", "--bootstrap-server", broker.address)

    taken = [cpu_ms(*words) for _ in range(RUNS)]

    assert statistics.median(taken) < START_CPU_MS_MAX, [round(each) for each in taken]


def test_help_needs_no_client() -> None:
    names = ("topics", "configs", "consumer-groups", "get-offsets", "log-dirs", "broker-api-versions")
    program = (
        "import sys\nfrom barnabas.cli.main import main\n"
        "try: main([sys.argv[1], '--help'])\nexcept SystemExit: pass\n"
        "heavy = {'asyncio', 'argparse', 'barnabas.client', 'barnabas.server', 'pyarrow'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    for name in names:
        subprocess.run([sys.executable, "-c", program, name], check=True, stdout=subprocess.DEVNULL)


def test_a_tool_imports_neither_the_server_nor_arrow(broker: OurBroker) -> None:
    program = (
        "import sys\nfrom barnabas.cli.main import main\n"
        "code = main(['topics', '--describe', '--bootstrap-server', sys.argv[1]])\n"
        "heavy = [name for name in sys.modules if name.startswith(('barnabas.server', 'barnabas.storage',"
        " 'pyarrow', 'pkg_resources', 'argparse', 'uvloop'))]\n"
        "assert code == 0 and not heavy, heavy\n"
    )

    subprocess.run([sys.executable, "-c", program, broker.address], check=True, stdout=subprocess.DEVNULL)


def test_ctrl_c_ends_a_tool_that_waits_for_a_broker(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with started(tmp_path / "err", "topics", "--list", "--bootstrap-server", address) as running:
            # The tool has started when its first request arrives.
            accepted, _ = silent.accept()
            with accepted:
                assert accepted.recv(1)
                ended = running.stop(signal.SIGINT)

    assert (ended.code, ended.out, ended.err) == (130, "", "")


def test_a_closed_output_causes_no_traceback(broker: OurBroker, tmp_path: Path) -> None:
    made = run_to_end(
        tmp_path / "made", "topics", "--create", "--topic", "a", "--bootstrap-server", broker.address
    )
    assert made.code == 0
    words = [sys.executable, "-m", "barnabas.cli.main", "topics", "--describe", "--bootstrap-server"]
    errors = tmp_path / "err"

    with errors.open("wb") as err:
        tool = subprocess.Popen(
            [*words, broker.address],
            stdout=subprocess.PIPE,
            stderr=err,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
        assert tool.stdout is not None
        tool.stdout.close()
        code = tool.wait(30)

    assert (code, errors.read_text()) == (1, "")
