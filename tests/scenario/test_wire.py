"""What the wire room answers to odd bytes, as text that can be read aloud: see wire/*.txt.

Commands: `limit BYTES` starts a connection with that frame limit, `feed HEX` gives it bytes and answers with
the requests they complete, `request HEX` decodes one frame without its length.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.base.errors import BarnabasError
from barnabas.protocol.exchange import FRAME_BYTES_MAX, FrameDecoder, decode_request
from support.scenarios import check_scenario

pytestmark = pytest.mark.kernel

FILES = sorted((Path(__file__).parent / "wire").glob("*.txt"))


class Connection:
    def __init__(self) -> None:
        self.frames = FrameDecoder(FRAME_BYTES_MAX)

    def run(self, commands: list[str]) -> Iterator[str]:
        for command in commands:
            word, _, rest = command.partition(" ")
            match word:
                case "limit":
                    self.frames = FrameDecoder(int(rest))
                case "feed":
                    yield from self.feed(bytes.fromhex(rest))
                case "request":
                    yield show_request(bytes.fromhex(rest))
                case _:
                    raise AssertionError(f"no command {word!r}")

    def feed(self, data: bytes) -> Iterator[str]:
        try:
            for frame in self.frames.feed(data):
                yield show_request(frame)
        except BarnabasError as error:
            yield show_error(error)
        yield f"held: {self.frames.held}, broken: {self.frames.broken is not None}"


def show_request(frame: bytes) -> str:
    try:
        request = decode_request(frame)
    except BarnabasError as error:
        return show_error(error)
    return f"{request.api.key.name} v{request.version} #{request.correlation_id}: {request.body!r}"


def show_error(error: BarnabasError) -> str:
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    check_scenario(path, Connection().run)


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 2
