"""What the pages refer to exists: links, files, commands, options, make targets, settings, modules.

A name that a page invents for an example, or that belongs to other software, is in one of the lists below.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from barnabas.base.settings import settings_of
from barnabas.cli.main import COMMANDS
from barnabas.client.consumer.settings import ConsumerSettings
from barnabas.client.producer.settings import ProducerSettings
from barnabas.client.settings import REFUSED, AdminSettings, ClientSettings
from barnabas.server.settings.catalog import BROKER, CLIENT_METRICS, GROUP
from barnabas.storage.topic_settings import SETTINGS as TOPIC
from support.docs.pages import DOCS, ROOT, all_pages, anchors, blocks, links, name_of, prose, spans
from support.spark.options import spark_options

PAGES = all_pages()
GUIDES = [page for page in PAGES if page.parent.name in ("guides", "concepts")]
DESIGN = sorted((DOCS / "design").glob("*.md"))
CLIENTS: tuple[type[ClientSettings], ...] = (ProducerSettings, ConsumerSettings, AdminSettings)

# A dotted name in lower case, with a value or without one.
SETTING = re.compile(r"([a-z][a-z0-9]*(?:\.[a-z0-9-]+)+)(?:=.*)?")
FILE_ENDINGS = (
    ".py",
    ".md",
    ".toml",
    ".properties",
    ".json",
    ".ini",
    ".sqlite",
    ".log",
    ".swap",
    ".txnindex",
)
# Modules, and attributes in pages about the design.
OTHER_DOTTED = re.compile(r"(barnabas|spark|librt|sys)\..*")
# Names of features, which are levels of the metadata, and not settings.
FEATURES = {"metadata.version", "kraft.version", "transaction.version", "group.version"}
# Names that Kafka's own files and tools have, and pages compare ours with.
OF_OTHERS = {"listener.name"}
# Attributes of an object that the text is about.
ATTRIBUTES = {"caller.version", "membership.todo", "table.markers", "df.write"}
# Options of other programs.
OTHER_OPTIONS = {
    "--shm-size",
    "--master",
    "--class",
    "--conf",
    "--packages",
    "--enable-optimizations",
    "--with-lto",
    "--enable-shared",
    "--call-graph",
    "--param",
    "--barnabas-storage",
    "--only",
}
STALE = re.compile(
    r"\b(so far|for now|(not|isn't|aren't) (\w+ ){0,2}yet|(is|are) no [\w -]+ yet|not built|will be)\b",
    re.IGNORECASE,
)


def found_in(
    pages: list[Path], find: Callable[[Path], Iterable[tuple[int, str]]]
) -> Iterator[tuple[str, str]]:
    for page in pages:
        for number, text in find(page):
            yield f"{name_of(page)}:{number}", text


def code(page: Path) -> Iterator[tuple[int, str]]:
    """Everything on a page that a reader may type: spans and blocks."""
    yield from spans(page)
    for block in blocks(page):
        for number, line in enumerate(block.text.splitlines(), block.line + 1):
            yield number, line
    for number, line in prose(page):
        if line.startswith("    "):
            yield number, line.strip()


def test_every_link_leads_to_a_file_and_to_a_heading() -> None:
    broken = []
    for page in PAGES:
        for number, target in links(page):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                broken.append(f"{name_of(page)}:{number}: {target}")

    assert broken == []


def test_every_path_from_the_root_exists() -> None:
    missing = [
        f"{where}: {text}"
        for where, text in found_in(PAGES, spans)
        for path in re.findall(r"(?:^|(?<=\s))((?:docs|tests|src|bench)/[\w./*-]*[\w*])", text)
        if not any(ROOT.glob(path))
    ]

    assert missing == []


def test_every_module_that_a_design_names_exists() -> None:
    folders = [ROOT / name for name in ("src", "tests", "bench")]
    known = {"/setup.py", *(str(path) for folder in folders for path in folder.rglob("*.py"))}
    missing = [
        f"{name_of(page)}: {path}"
        for page in DESIGN
        for path in sorted(set(re.findall(r"[\w/]*\w\.py\b", page.read_text())))
        if not any(one.endswith(f"/{path.strip('/')}") for one in known) and path != "handlers/x.py"
    ]

    assert missing == []


def test_every_command_of_ours_exists() -> None:
    unknown = [
        f"{where}: barnabas {name}"
        for where, text in found_in(PAGES, code)
        for name in re.findall(r"(?:^|[\s(|])barnabas ([a-z][\w-]*)", text)
        if name not in COMMANDS
    ]

    assert unknown == []


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    unknown = [
        f"{where}: make {name}"
        for where, text in found_in(PAGES, code)
        for name in re.findall(r"^make ([a-z]+)", text)
        if name not in targets
    ]

    assert unknown == []


def known_settings() -> set[str]:
    names = {*BROKER, *TOPIC, *GROUP, *CLIENT_METRICS, *FEATURES, *OF_OTHERS, *ATTRIBUTES, *REFUSED}
    for cls in CLIENTS:
        names |= {*settings_of(cls), *cls.REFUSED}
    return names | {f"kafka.{name}" for name in names} | set(spark_options())


def test_every_setting_exists() -> None:
    known = known_settings()
    prefixes = tuple(name for name in known if name.endswith("."))
    unknown = []
    for where, text in found_in(PAGES, spans):
        match = SETTING.fullmatch(text)
        if match is None or match[1] in known or match[1].startswith(prefixes):
            continue
        if not match[1].endswith(FILE_ENDINGS) and not OTHER_DOTTED.fullmatch(match[1]):
            unknown.append(f"{where}: {match[1]}")

    assert unknown == []


def test_every_option_exists() -> None:
    shown = set(re.findall(r"--[a-z][\w-]+", (DOCS / "reference" / "cli.md").read_text()))
    unknown = [
        f"{where}: {option}"
        for where, text in found_in([*GUIDES, ROOT / "README.md"], code)
        for option in re.findall(r"(?:^|(?<=[\s`(]))--[a-z][\w-]+", text)
        if option not in shown | OTHER_OPTIONS
    ]

    assert unknown == []


def test_every_module_of_ours_can_be_imported() -> None:
    unknown = []
    for where, text in found_in(PAGES, spans):
        if re.fullmatch(r"barnabas(\.\w+)+", text) and not can_import(text):
            unknown.append(f"{where}: {text}")

    assert unknown == []


def can_import(name: str) -> bool:
    """Whether it is a module, or something in one."""
    try:
        import_module(name)
    except ImportError:
        module, _, attribute = name.rpartition(".")
        return bool(module) and can_import(module) and hasattr(import_module(module), attribute)
    return True


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_a_guide_does_not_mention_unbuilt_features(page: Path) -> None:
    """docs/reference/apis.md and settings.md are made from the code, and so cannot be out of date."""
    assert [f"{number}: {line}" for number, line in prose(page) if STALE.search(line)] == []


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    linked = {(index.parent / target).resolve() for _, target in links(index)}

    assert [name_of(page) for page in DOCS.rglob("*.md") if page not in linked | {index}] == []


def test_every_name_in_a_design_exists() -> None:
    """Names with an underscore or a capital inside: what is renamed in the code is renamed on its page."""
    files = [path for folder in ("src", "tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    files += [ROOT / name for name in ("setup.py", "Makefile", "pyproject.toml")]
    words = {word for path in files for word in re.findall(r"\w+", f"{path.stem} {path.read_text()}")}
    unknown = [
        f"{where}: {name}"
        for where, text in found_in(DESIGN, spans)
        for name in re.findall(r"\b[A-Za-z]\w*(?:_|[a-z][A-Z])\w+\b", text)
        if name not in words
    ]

    assert unknown == []
