"""The data directory that Kafka 4.3.0 wrote: tests/fixtures/kafka-4.3/README.md says what is in it."""

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kafka-4.3"


@cache
def sample_files() -> dict[str, bytes]:
    """Every file by its path below the log directory, in the order of the paths."""
    files = {}
    with tarfile.open(FIXTURES / "data.tar.xz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                files[str(Path(member.name).relative_to("data"))] = content.read()
    return dict(sorted(files.items()))


@cache
def expected_reads() -> dict[str, Any]:
    """What a client read back from the broker that wrote the directory."""
    loaded: dict[str, Any] = json.loads((FIXTURES / "expected.json").read_text())
    return loaded
