"""A strict reader of Prometheus' text format, written from the format's rules and not from our writer."""

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_SUFFIXES = {
    "counter": ("_total", ""),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "info": ("_info",),
}

Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    name: str
    help: str
    type: str = ""
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


def read_exposition(data: bytes, *, open_metrics: bool = False) -> dict[str, Family]:
    """Every family by its name. AssertionError at the first thing that is against the rules."""
    content = data.decode("utf-8")
    assert content.endswith("\n"), "the last line must end"
    lines = content[:-1].split("\n")
    if open_metrics:
        assert lines.pop() == "# EOF", "OpenMetrics ends with # EOF"
    families: dict[str, Family] = {}
    current: Family | None = None
    for line in lines:
        if line.startswith("# HELP "):
            _, _, name, text = line.split(" ", 3)
            assert name not in families, f"{name} comes twice"
            current = families[name] = Family(name, text)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert current is not None, line
            assert (current.name, current.type) == (name, ""), line
            current.type = kind
        else:
            assert current is not None, line
            _add(current, line, open_metrics)
    for family in families.values():
        assert family.samples, f"{family.name} has no samples"
        if family.type == "histogram":
            _check_histogram(family)
    return families


def _add(family: Family, line: str, open_metrics: bool) -> None:
    found = _SAMPLE.fullmatch(line)
    assert found is not None, f"no sample: {line!r}"
    name, labels, value = found.groups()
    suffixes = _SUFFIXES[family.type]
    assert name.removeprefix(family.name) in suffixes, f"{name} in the family {family.name}"
    if family.type == "counter":
        assert name.endswith("_total"), line
        assert open_metrics == (name != family.name), line
    key = (name, _labels(labels))
    assert key not in family.samples, f"{line!r} comes twice"
    family.samples[key] = float(value.replace("Inf", "inf"))


def _labels(text: str | None) -> Labels:
    if text is None:
        return ()
    found, at = [], 0
    while at < len(text):
        one = _LABEL.match(text, at)
        assert one is not None, f"no label at {at} of {text!r}"
        value = re.sub(r'\\[\\"n]', lambda escape: _ESCAPES[escape[0]], one[2])
        found.append((one[1], value))
        at = one.end()
    assert len({name for name, _ in found}) == len(found), f"a label comes twice in {text!r}"
    return tuple(found)


def _check_histogram(family: Family) -> None:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            rest = tuple(one for one in labels if one[0] != "le")
            bound = float(dict(labels)["le"].replace("Inf", "inf"))
            groups.setdefault(rest, []).append((bound, value))
    for rest, buckets in groups.items():
        bounds = [bound for bound, _ in buckets]
        counts = [count for _, count in buckets]
        assert bounds == sorted(bounds), rest
        assert bounds[-1] == float("inf"), rest
        assert counts == sorted(counts), f"{rest}: buckets must be cumulative"
        assert family.samples[f"{family.name}_count", rest] == counts[-1], rest
        assert (f"{family.name}_sum", rest) in family.samples, rest
