"""Draw docs/architecture.svg from docs/architecture.txt, which says what the picture holds.

    python docs/architecture.py

The same text always gives the same picture. A test compares both and checks the packages that are named.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
TEXT, PICTURE = HERE / "architecture.txt", HERE / "architecture.svg"

Point = tuple[float, float]

WIDTH = 800
MARGIN = 16
TITLE_BASELINE, LINE_OFFSET, LINE_HEIGHT, BOX_PADDING = 21, 3, 17, 11
FRAME_PADDING, FRAME_CAPTION = 16, 28
NOTE_ABOVE = 10
ARROW = 7
LABEL_OFFSET = 8

# The viewer's theme decides. The background is opaque, so that both are readable on any page.
STYLE = """
  rect { stroke: #59636e; stroke-width: 1; }
  .page { fill: #ffffff; stroke: none; }
  text { font: 13px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .name { font: 600 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
  .program { font-size: 14px; font-weight: 600; }
  .label, .caption { font-size: 12px; fill: #59636e; }
  .frame { fill: none; stroke-dasharray: 5 4; }
  .outside { fill: #f6f8fa; }
  .client { fill: #f3eafd; stroke: #8250df; }
  .server { fill: #e3f0ff; stroke: #0969da; }
  .state { fill: #e2f6e6; stroke: #1a7f37; }
  .log { fill: #fff3d4; stroke: #9a6700; }
  .ground { fill: #eceff2; }
  .edge { fill: none; stroke: #59636e; stroke-width: 1.5; }
  .head { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    rect { stroke: #9198a1; }
    .page { fill: #0d1117; }
    text { fill: #f0f6fc; }
    .label, .caption { fill: #9198a1; }
    .outside { fill: #151b23; }
    .client { fill: #271c3d; stroke: #ab7df8; }
    .server { fill: #10243e; stroke: #4493f8; }
    .state { fill: #12281b; stroke: #3fb950; }
    .log { fill: #2c2410; stroke: #d29922; }
    .ground { fill: #21262d; }
    .edge { stroke: #9198a1; }
    .head { fill: #9198a1; }
  }
"""


@dataclass
class Box:
    """A named rectangle. `top` and `bottom` are known when its layer has been placed."""

    name: str
    left: int
    right: int
    kind: str
    lines: list[str]
    is_package: bool
    top: int = 0
    bottom: int = 0

    @property
    def height(self) -> int:
        return TITLE_BASELINE + LINE_HEIGHT * len(self.lines) + BOX_PADDING


@dataclass
class Layer:
    """Boxes side by side, `gap` pixels below the layer above."""

    gap: int
    boxes: list[Box] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Frame:
    """A dashed frame around the layers of two boxes."""

    name: str
    first: str
    last: str
    left: int
    right: int
    text: str


@dataclass(frozen=True)
class Edge:
    """An arrow from box to box: it meets the end `at` an x, or makes a detour `around` an x at their left."""

    start: str
    end: str
    both_ways: bool
    label: str
    at: int | None = None
    around: int | None = None


@dataclass
class Picture:
    """Everything that the text names."""

    layers: list[Layer] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    @property
    def boxes(self) -> dict[str, Box]:
        return {box.name: box for layer in self.layers for box in layer.boxes}


def parse(text: str) -> Picture:
    """Read the description. ValueError names a line that is none."""
    picture = Picture()
    for line in text.splitlines():
        if line and not line.startswith("#"):
            _parse_line(line, picture)
    return picture


def _parse_line(line: str, picture: Picture) -> None:
    head, *texts = (part.strip() for part in line.split("|"))
    text = texts[0] if texts else ""
    match shlex.split(head):
        case ["layer", gap]:
            picture.layers.append(Layer(int(gap)))
        case ["box" | "program" as what, name, span, kind]:
            picture.layers[-1].boxes.append(Box(name, *_span(span), kind, texts, is_package=what == "box"))
        case ["note", x]:
            picture.layers[-1].notes.append((int(x), text))
        case ["frame", name, first, last, span]:
            picture.frames.append(Frame(name, first, last, *_span(span), text))
        case ["edge", start, "->" | "<->" as arrow, end]:
            picture.edges.append(Edge(start, end, arrow == "<->", text))
        case ["edge", start, "->" | "<->" as arrow, end, "at", x]:
            picture.edges.append(Edge(start, end, arrow == "<->", text, at=int(x)))
        case ["edge", start, "->" | "<->" as arrow, end, "around", x]:
            picture.edges.append(Edge(start, end, arrow == "<->", text, around=int(x)))
        case _:
            raise ValueError(f"not a line of an architecture: {line!r}")


def _span(text: str) -> tuple[int, int]:
    left, _, right = text.partition("-")
    return int(left), int(right)


def package_names(text: str) -> set[str]:
    """The packages and modules of barnabas that the text names, without `barnabas.`."""
    picture = parse(text)
    boxes = {box.name for box in picture.boxes.values() if box.is_package}
    return boxes | {frame.name for frame in picture.frames}


def draw(text: str) -> str:
    """Return the SVG."""
    picture = parse(text)
    bottom = _place(picture)
    height = bottom + FRAME_PADDING + FRAME_CAPTION + MARGIN
    parts = [f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>']
    parts += [_frame(one, picture.boxes) for one in reversed(picture.frames)]
    parts += [_box(box) for box in picture.boxes.values()]
    parts += [_edge(edge, picture.boxes) for edge in picture.edges]
    for layer in picture.layers:
        top = layer.boxes[0].top
        parts += [_text("label", x, top - NOTE_ABOVE, note) for x, note in layer.notes]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="title">\n<title id="title">How a Barnabas broker is built</title>\n'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def _place(picture: Picture) -> int:
    """Give every box its top and bottom. The bottom of the last layer."""
    bottom = MARGIN
    for layer in picture.layers:
        top = bottom + layer.gap
        bottom = top + max(box.height for box in layer.boxes)
        for box in layer.boxes:
            box.top, box.bottom = top, bottom
    return bottom


def _frame(frame: Frame, boxes: dict[str, Box]) -> str:
    """A frame has its caption at its bottom."""
    top = boxes[frame.first].top - FRAME_PADDING
    bottom = boxes[frame.last].bottom + FRAME_PADDING + FRAME_CAPTION
    width, height = frame.right - frame.left, bottom - top
    name = f'<tspan class="name">{escape(frame.name)}</tspan>'
    return (
        f'<rect class="frame" x="{frame.left}" y="{top}" width="{width}" height="{height}" rx="8"/>\n'
        f'<text class="caption" x="{frame.left + 24}" y="{bottom - 12}">'
        f"{name}&#160; {escape(frame.text)}</text>"
    )


def _box(box: Box) -> str:
    middle = (box.left + box.right) / 2
    style = "name" if box.is_package else "program"
    title = box.name if box.is_package else box.name.replace("_", " ")
    parts = [
        f'<rect class="{box.kind}" x="{box.left}" y="{box.top}" width="{box.right - box.left}" '
        f'height="{box.bottom - box.top}" rx="6"/>',
        _text(style, middle, box.top + TITLE_BASELINE, title),
    ]
    for number, line in enumerate(box.lines, start=1):
        parts.append(_text("", middle, box.top + TITLE_BASELINE + LINE_OFFSET + LINE_HEIGHT * number, line))
    return "\n".join(parts)


def _text(style: str, x: float, y: float, text: str, anchor: str = "middle") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _edge(edge: Edge, boxes: dict[str, Box]) -> str:
    start, end = boxes[edge.start], boxes[edge.end]
    if edge.around is not None:
        return _detour(edge, start, end)
    if start.top == end.top:
        return _level(edge, start, end)
    return _upright(edge, start, end)


def _upright(edge: Edge, start: Box, end: Box) -> str:
    """Straight up or down where the boxes overlap; otherwise down, across and down."""
    first, last = (start.bottom, end.top) if start.top < end.top else (start.top, end.bottom)
    left, right = max(start.left, end.left), min(start.right, end.right)
    to_x = (left + right) / 2 if left < right else (end.left + end.right) / 2
    if edge.at is not None:
        to_x = edge.at
    from_x = to_x if start.left <= to_x <= start.right else (start.left + start.right) / 2
    if from_x == to_x:
        return _arrow(edge, [(to_x, first), (to_x, last)], (to_x + LABEL_OFFSET, (first + last) / 2 + 4))
    turn = (first + last) / 2
    points = [(from_x, first), (from_x, turn), (to_x, turn), (to_x, last)]
    return _arrow(edge, points, (to_x + LABEL_OFFSET, turn - 6))


def _level(edge: Edge, start: Box, end: Box) -> str:
    y = (start.top + start.bottom) / 2
    from_x, to_x = (start.right, end.left) if start.left < end.left else (start.left, end.right)
    return _arrow(edge, [(from_x, y), (to_x, y)], ((from_x + to_x) / 2, y - 6))


def _detour(edge: Edge, start: Box, end: Box) -> str:
    assert edge.around is not None
    from_y, to_y = (start.top + start.bottom) / 2, (end.top + end.bottom) / 2
    points = [(start.left, from_y), (edge.around, from_y), (edge.around, to_y), (end.left, to_y)]
    return _arrow(edge, points, (edge.around + LABEL_OFFSET, (from_y + to_y) / 2))


def _arrow(edge: Edge, points: Sequence[Point], label_at: Point) -> str:
    path = " ".join(f"{'L' if number else 'M'}{x:g} {y:g}" for number, (x, y) in enumerate(points))
    parts = [f'<path class="edge" d="{path}"/>', _head(points[-2], points[-1])]
    if edge.both_ways:
        parts.append(_head(points[1], points[0]))
    if edge.label:
        parts.append(_text("label", *label_at, edge.label, anchor="start"))
    return "\n".join(parts)


def _head(before: Point, tip: Point) -> str:
    """A triangle at `tip`, pointing away from `before`."""
    (x, y), dx, dy = tip, _sign(tip[0] - before[0]), _sign(tip[1] - before[1])
    back_x, back_y = x - ARROW * dx, y - ARROW * dy
    side_x, side_y = ARROW / 2 * dy, ARROW / 2 * dx
    return (
        f'<path class="head" d="M{x:g} {y:g} L{back_x + side_x:g} {back_y + side_y:g} '
        f'L{back_x - side_x:g} {back_y - side_y:g} Z"/>'
    )


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


if __name__ == "__main__":
    PICTURE.write_text(draw(TEXT.read_text()))
