"""Kafka Streams' word count in processes of its own, and what its output must be.

The program is tests/interop/clients/streams: it is compiled on first use with the jars that Maven gets, which
pom.xml beside it names. word_count_program() raises CannotBuild with the reason where that cannot be.
"""

import hashlib
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from support.clients.remote import CannotBuild
from support.clients.remote_build import BUILT, SOURCES
from support.eos_runs.records import Seen

PROGRAM = SOURCES / "streams"
MAIN_CLASS = "WordCount"
FATAL = 3
MAVEN_TIMEOUT_S = 600
COMPILE_TIMEOUT_S = 120
END_TIMEOUT_S = 90
COMPLAINTS_SHOWN = 4000
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
# What it tells of every rebalance is much; what goes wrong is enough.
_LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)


def word_count_program() -> list[str]:
    """The command, without its arguments."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise CannotBuild(f"{program} is not installed, so Kafka Streams cannot be run")
    sources = sorted(PROGRAM.iterdir())
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    built = BUILT / f"streams-{digest}"
    if not _is_whole(built):
        _build(built)
    classpath = os.pathsep.join([str(built), (built / "classpath").read_text()])
    return ["java", *_QUICK_START, *_LOGGING, "-cp", classpath, MAIN_CLASS]


def _is_whole(built: Path) -> bool:
    """Whether it is compiled, and the jars still are where they were."""
    jars = built / "classpath"
    return jars.exists() and all(Path(jar).exists() for jar in jars.read_text().split(os.pathsep))


def _build(built: Path) -> None:
    # Beside the final name first, because two test processes may be at it.
    fresh = built.with_name(f"{built.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    jars = fresh / "classpath"
    _resolve(jars)
    sources = [str(source) for source in PROGRAM.glob("*.java")]
    command = ["javac", "-cp", jars.read_text(), "-d", str(fresh), *sources]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    # That it does not compile is our own mistake, and not a machine that lacks something.
    assert done.returncode == 0, done.stderr
    shutil.rmtree(built, ignore_errors=True)
    try:
        fresh.rename(built)
    except OSError:
        # The other process was first.
        shutil.rmtree(fresh)


def _resolve(jars: Path) -> None:
    command = ["mvn", "-q", "-B", "-f", str(PROGRAM / "pom.xml"), _GOAL, f"-Dmdep.outputFile={jars}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"Maven did not get Kafka Streams within {MAVEN_TIMEOUT_S} seconds") from None
    if done.returncode != 0 or not jars.exists():
        reason = (done.stdout.strip().splitlines() or ["no reason given"])[0]
        raise CannotBuild(f"Maven cannot get Kafka Streams: {reason}")


class WordCounter:
    """One instance of the application. After a kill the next one finds the same directory of states."""

    def __init__(self, command: Sequence[str], arguments: Sequence[str], complaints: Path) -> None:
        self._complaints = complaints
        with complaints.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, *arguments], stdin=subprocess.PIPE, stdout=output, stderr=output
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)
        self._close()

    def leave(self) -> None:
        """It ends what it has begun, and has to end well."""
        self._close()
        self._process.wait(END_TIMEOUT_S)
        self.check_end()

    def check_end(self) -> None:
        """Of one that ended by itself: it was told to, or says that nothing helps."""
        self._close()
        code = self._process.returncode
        assert code in (0, FATAL), f"it ended with {code}:\n{self.complaints()}"

    def complaints(self) -> str:
        return self._complaints.read_text(errors="replace")[-COMPLAINTS_SHOWN:]

    def _close(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()


def word_faults(output: Mapping[int, Sequence[Seen]], expected: Counter[str]) -> list[str]:
    """Everything that is wrong: each word has the counts 1 to n, each once and in this order."""
    told: dict[str, list[int]] = {}
    for records in output.values():
        for record in records:
            word, _, count = record.value.decode().rpartition(":")
            told.setdefault(word, []).append(int(count))
    return [fault for word in sorted({*told, *expected}) for fault in _of(word, told, expected[word])]


def _of(word: str, told: Mapping[str, Sequence[int]], times: int) -> Iterator[str]:
    counts = told.get(word, ())
    for at, count in enumerate(counts, start=1):
        if count != at:
            yield f"{word}: {count} where {at} was due"
            return
    if len(counts) != times:
        yield f"{word}: counted {len(counts)} times, and is there {times} times"
