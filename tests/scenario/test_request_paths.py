"""A request enters few files and makes few calls, and docs/design/0018-request-paths.md lists them.

If a change needs one more file, first look for one that the path can do without.
"""

import pytest

from support.process.request_paths import PAGE, RequestPath, files_on, measured_paths, page

# The maximum number of files that a request may enter: a reader cannot keep more in mind.
FILES_MAX = {"produce": 17, "fetch": 16, "commit": 28, "join": 32}
# The calls when the limit was recorded. Lower them when a path becomes shorter; calls are time.
CALLS_MAX = {"produce": 104, "fetch": 106, "commit": 166, "join": 311}


@pytest.fixture(scope="module")
def paths() -> dict[str, RequestPath]:
    return measured_paths()


@pytest.mark.parametrize("request_name", FILES_MAX)
def test_a_request_enters_few_files(paths: dict[str, RequestPath], request_name: str) -> None:
    files = paths[request_name].files

    assert len(files) <= FILES_MAX[request_name], f"{len(files)} files: {', '.join(files)}"


@pytest.mark.parametrize("request_name", CALLS_MAX)
def test_a_request_makes_few_calls(paths: dict[str, RequestPath], request_name: str) -> None:
    assert paths[request_name].calls <= CALLS_MAX[request_name]


def test_the_page_lists_the_files_of_every_path(paths: dict[str, RequestPath]) -> None:
    measured = {name: set(path.files) for name, path in paths.items()}

    assert files_on(PAGE.read_text()) == measured, (
        "write the page again: PYTHONPATH=src:tests python -m support.process.request_paths"
    )


def test_a_page_is_read_as_it_is_written() -> None:
    paths = {"produce": RequestPath({"a.py": ["f"], "b/c.py": ["g", "h"]}, 3), "fetch": RequestPath({}, 0)}

    assert files_on(page(paths)) == {"produce": {"a.py", "b/c.py"}, "fetch": set()}
