"""The real file system: bounded descriptors, pinned ranges, pages that are not in memory."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import pytest

from barnabas.storage import disk
from barnabas.storage.disk import PROBE_STEP, DiskFile, DiskFileSystem
from barnabas.storage.files import NotCached
from support.kit import python

MEGABYTE = 1 << 20
COLD_TRIES = 10

P = ParamSpec("P")


def descriptors(directory: Path) -> int:
    """The number of this process's descriptors for files in a directory, including removed files."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        # The listing's own descriptor is closed by now.
        with suppress(FileNotFoundError):
            count += os.readlink(f"/proc/self/fd/{number}").startswith(f"{directory}/")
    return count


def evict(fs: DiskFileSystem, tmp_path: Path) -> None:
    """With a limit of one open file, opening another one evicts all others."""
    fs.open(str(tmp_path / "other"), create=True)


def drop_pages(number: int) -> None:
    os.fsync(number)
    # From here on reads are exact, without read-ahead.
    os.posix_fadvise(number, 0, 0, os.POSIX_FADV_RANDOM)
    os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)


def make_cold(file: DiskFile) -> None:
    """Drop the file from the page cache, or skip the test where that cannot be done or be seen.

    This is tried with another file, because asking about a page makes the kernel fetch it.
    """
    with open(file.path + ".probe", "w+b", buffering=0) as probe:
        probe.write(bytes(MEGABYTE))
        for _ in range(COLD_TRIES):
            drop_pages(probe.fileno())
            try:
                os.preadv(probe.fileno(), [bytearray(1)], 0, getattr(os, "RWF_NOWAIT", 0))
            except BlockingIOError:
                drop_pages(file.fileno())
                return
            except OSError as error:
                pytest.skip(f"this file system cannot say what is in memory: {error}")
    pytest.skip("this file system keeps all pages in memory")


def cold(test: Callable[P, None]) -> Callable[P, None]:
    """Repeat a test that expects NotCached.

    The kernel fetches what it is asked about without waiting for it; but one time in a hundred the disk is
    faster than the kernel's way back, and the bytes are cached by the time that it answers.
    """

    @wraps(test)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> None:
        for _ in range(COLD_TRIES - 1):
            with suppress(pytest.fail.Exception):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return repeated


def test_many_files_share_few_descriptors(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=2)

    files = [fs.open(str(tmp_path / f"{number}"), create=True) for number in range(50)]
    for number, file in enumerate(files):
        file.write(0, [b"file %d" % number])
    contents = [file.read(0, 100) for file in files]

    assert contents == [b"file %d" % number for number in range(50)]
    assert fs.open_files == 2
    assert descriptors(tmp_path) == 2


def test_a_file_in_use_keeps_its_descriptor(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=3)
    busy = fs.open(str(tmp_path / "busy"), create=True)
    number = busy.fileno()

    for other in range(20):
        fs.open(str(tmp_path / f"{other}"), create=True)
        busy.write(0, [b"x"])

    assert busy.fileno() == number
    assert os.path.samestat(os.fstat(number), os.stat(busy.path))


def test_closing_gives_the_descriptor_back_and_ends_the_use(tmp_path: Path) -> None:
    fs = DiskFileSystem()
    file = fs.open(str(tmp_path / "a"), create=True)

    file.close()
    file.close()

    assert descriptors(tmp_path) == 0
    assert fs.open_files == 0
    for use in (lambda: file.read(0, 1), lambda: file.rename(str(tmp_path / "b"))):
        with pytest.raises(OSError, match="Bad file descriptor"):
            use()


def test_a_missing_file_is_missed_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DiskFileSystem().open(str(tmp_path / "missing"))


def test_an_evicted_file_is_found_under_its_new_name(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    file = fs.open(str(tmp_path / "a"), create=True)
    file.write(0, [b"hello"])
    evict(fs, tmp_path)

    file.rename(str(tmp_path / "b"))
    evict(fs, tmp_path)

    assert file.path == str(tmp_path / "b")
    assert file.read(0, 10) == b"hello"


def test_a_failed_rename_changes_nothing(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    file = fs.open(str(tmp_path / "a"), create=True)

    with pytest.raises(FileNotFoundError):
        file.rename(str(tmp_path / "missing" / "a"))

    evict(fs, tmp_path)
    assert file.path == str(tmp_path / "a")
    assert file.size() == 0


def test_evicted_files_follow_their_directory(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    fs.make_directory(str(tmp_path / "old" / "inner"))
    file = fs.open(str(tmp_path / "old" / "a"), create=True)
    inner = fs.open(str(tmp_path / "old" / "inner" / "b"), create=True)
    fs.make_directory(str(tmp_path / "older"))
    neighbour = fs.open(str(tmp_path / "older" / "c"), create=True)
    file.write(0, [b"a"])
    inner.write(0, [b"b"])

    fs.rename(str(tmp_path / "old"), str(tmp_path / "new"))
    evict(fs, tmp_path)

    assert (file.path, file.read(0, 9)) == (str(tmp_path / "new" / "a"), b"a")
    assert (inner.path, inner.read(0, 9)) == (str(tmp_path / "new" / "inner" / "b"), b"b")
    assert neighbour.path == str(tmp_path / "older" / "c")
    fs.rename(str(tmp_path / "new"), str(tmp_path / "newest"))
    assert file.path == str(tmp_path / "newest" / "a")


def test_files_stay_where_they_are_when_renaming_their_directory_fails(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    fs.make_directory(str(tmp_path / "old"))
    file = fs.open(str(tmp_path / "old" / "a"), create=True)

    with pytest.raises(FileNotFoundError):
        fs.rename(str(tmp_path / "old"), str(tmp_path / "missing" / "new"))

    evict(fs, tmp_path)
    assert file.path == str(tmp_path / "old" / "a")
    assert file.size() == 0
    # The old path is not tried any more.
    fs.make_directory(str(tmp_path / "missing" / "new"))
    fs.rename(file.path, str(tmp_path / "missing" / "new" / "a"))
    evict(fs, tmp_path)
    with pytest.raises(FileNotFoundError):
        file.size()


def test_a_file_that_took_the_name_does_not_pass_for_the_evicted_one(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    file = fs.open(str(tmp_path / "a"), create=True)
    fs.open(str(tmp_path / "b"), create=True).write(0, [b"somebody else's"])

    fs.rename(str(tmp_path / "b"), str(tmp_path / "a"))

    with pytest.raises(OSError, match="Stale") as raised:
        file.read(0, 10)
    assert raised.value.errno == errno.ESTALE


def test_a_pinned_range_outlives_eviction_closing_and_removal(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    file = fs.open(str(tmp_path / "a"), create=True)
    file.write(0, [b"0123456789"])
    pinned = fs.range(file, 2, 5)

    evict(fs, tmp_path)
    fs.remove(file.path)
    file.close()

    assert pinned.read() == b"23456"
    assert os.pread(pinned.fileno(), 5, 2) == b"23456"
    del pinned
    assert descriptors(tmp_path) == 0


def test_an_unreferenced_file_closes_its_descriptor(tmp_path: Path) -> None:
    fs = DiskFileSystem()
    file = fs.open(str(tmp_path / "a"), create=True)
    pinned = fs.range(file, 0, 0)

    del file
    assert fs.open_files == 0
    assert descriptors(tmp_path) == 1

    del pinned
    assert descriptors(tmp_path) == 0


def test_writes_of_any_number_of_parts_arrive_in_order(tmp_path: Path) -> None:
    fs = DiskFileSystem()
    file = fs.open(str(tmp_path / "a"), create=True)
    many = [b"%d," % number for number in range(3000)]

    file.write(0, [])
    file.write(0, [b"head "])
    file.write(5, [bytearray(b"and "), memoryview(b"tail "), b""])
    file.write(14, many)

    assert file.read(0, MEGABYTE) == b"head and tail " + b"".join(many)


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seven_bytes_at_most(number: int, parts: Sequence[bytes], at: int) -> int:
        return os.pwrite(number, b"".join(parts)[:7], at)

    monkeypatch.setattr(disk, "_pwritev", seven_bytes_at_most)
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)

    file.write(3, [b"0123", b"456", b"", b"789abcdefghij", b"k"])

    assert file.read(0, 100) == b"\0\0\x000123456789abcdefghijk"


def test_a_write_past_the_limit_of_the_system_fails_and_may_leave_a_part(tmp_path: Path) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.write(8_000, [bytes(5_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert file.size() == 10_000


def test_reads_end_where_the_file_ends(tmp_path: Path) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    content = os.urandom(10_000)
    file.write(0, [content])

    for read in (file.read, file.read_cached):
        assert read(0, 10_000) == content
        assert read(9_990, 100) == content[9_990:]
        assert read(100, 9_950) == content[100:]
        assert read(10_000, 5) == b""
        assert read(20_000, 5_000) == b""
    file.truncate(5)
    assert file.read(0, 100) == content[:5]
    assert file.size() == 5


def test_a_negative_position_is_refused(tmp_path: Path) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [b"hello"])

    for use in (
        lambda: file.read(-1, 1),
        lambda: file.read_cached(-1, 1),
        lambda: file.need_cached(-1, 1),
        lambda: file.write(-1, [b"x"]),
    ):
        with pytest.raises(OSError, match=r"position -1 is negative|Invalid argument"):
            use()
    assert file.read(0, 10) == b"hello"


@pytest.mark.parametrize("size", [1 << 40, 1 << 62])
def test_an_absurd_length_takes_no_memory(tmp_path: Path, size: int) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [b"short"])

    assert file.read(1, size) == b"hort"
    assert file.read_cached(1, size) == b"hort"
    assert file.read_cached(10, size) == b""


@cold
def test_cold_bytes_are_not_waited_for(tmp_path: Path) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    content = os.urandom(4 * MEGABYTE)
    file.write(0, [content])
    make_cold(file)

    with pytest.raises(NotCached) as small:
        file.read_cached(MEGABYTE, 1000)
    with pytest.raises(NotCached) as big:
        file.read_cached(2 * MEGABYTE, MEGABYTE)
    with pytest.raises(NotCached):
        file.need_cached(0, 4 * MEGABYTE)

    assert (small.value.at, small.value.size) == (MEGABYTE, 1000)
    assert MEGABYTE <= big.value.at - MEGABYTE < 2 * MEGABYTE
    small.value.warm()
    big.value.warm()
    assert file.read_cached(MEGABYTE, 1000) == content[MEGABYTE : MEGABYTE + 1000]
    assert file.read_cached(2 * MEGABYTE, MEGABYTE) == content[2 * MEGABYTE : 3 * MEGABYTE]
    file.need_cached(2 * MEGABYTE, MEGABYTE)


@cold
def test_a_partly_cached_read_reports_the_missing_part(tmp_path: Path) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [bytes(4 * MEGABYTE)])
    make_cold(file)
    file.read(0, MEGABYTE)

    with pytest.raises(NotCached) as raised:
        file.read_cached(0, 4 * MEGABYTE)

    assert raised.value.at >= MEGABYTE
    assert raised.value.at + raised.value.size == 4 * MEGABYTE


@pytest.mark.parametrize("cold", [0, 1, 5, 7])
@cold
def test_a_cold_piece_anywhere_is_noticed(tmp_path: Path, cold: int) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [bytes(8 * PROBE_STEP)])
    make_cold(file)

    for piece in range(8):
        if piece != cold:
            file.read(piece * PROBE_STEP, PROBE_STEP)

    with pytest.raises(NotCached) as raised:
        file.need_cached(0, 8 * PROBE_STEP)
    raised.value.warm()
    file.need_cached(0, 8 * PROBE_STEP)


@cold
def test_a_cold_last_page_is_noticed(tmp_path: Path) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [bytes(2 * PROBE_STEP)])
    make_cold(file)

    file.read(0, 2 * PROBE_STEP - 4096)

    file.need_cached(0, 2 * PROBE_STEP - 4096)
    with pytest.raises(NotCached):
        file.need_cached(0, 2 * PROBE_STEP)


def test_a_file_system_without_nowait_reads_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int, parts: Sequence[bytearray], at: int, flags: int) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(disk, "_preadv", unknown)
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [b"hello"])

    file.need_cached(0, 5)

    assert file.read_cached(0, 5) == b"hello"


def test_other_errors_of_a_cached_read_are_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(number: int, parts: Sequence[bytearray], at: int, flags: int) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(disk, "_preadv", broken)
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)

    with pytest.raises(OSError, match="Input/output error"):
        file.read_cached(0, 5)
    with pytest.raises(OSError, match="Input/output error"):
        file.need_cached(0, 5)


@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        (disk, "_pwrite", lambda file: file.write(0, [b"hello"])),
        (disk, "_pwritev", lambda file: file.write(0, [b"hel", b"lo"])),
        (disk, "_pread", lambda file: file.read(0, 5)),
        (disk, "_preadv", lambda file: file.read_cached(0, 5)),
        (disk, "_preadv", lambda file: file.need_cached(0, 5)),
        (os, "ftruncate", lambda file: file.truncate(5)),
        (os, "fdatasync", lambda file: file.sync()),
        (os, "lseek", lambda file: file.size()),
    ],
)
def test_a_descriptor_is_kept_until_the_current_call_ends(
    module: object,
    name: str,
    call: Callable[[DiskFile], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = DiskFileSystem().open(str(tmp_path / "a"), create=True)
    file.write(0, [b"world"])
    ask = getattr(module, name)
    asked = 0

    def evicted_meanwhile(number: int, *args: object) -> object:
        nonlocal asked
        asked += 1
        # Like another thread that opens many files; the first pass clears the used mark.
        file.evict()
        assert file.evict()
        assert os.readlink(f"/proc/self/fd/{number}").endswith("/a")
        return ask(number, *args)

    monkeypatch.setattr(module, name, evicted_meanwhile)

    call(file)

    assert asked > 0


def test_entries_are_sorted_by_name(tmp_path: Path) -> None:
    fs = DiskFileSystem()
    (tmp_path / "b").write_bytes(b"123")
    (tmp_path / "a").mkdir()
    (tmp_path / "c").write_bytes(b"")
    os.utime(tmp_path / "b", ns=(0, 1_700_000_000_123_999_999))

    entries = fs.entries(str(tmp_path))

    assert [(entry.name, entry.is_directory, entry.size) for entry in entries] == [
        ("a", True, 0),
        ("b", False, 3),
        ("c", False, 0),
    ]
    assert entries[1].modified_ms == 1_700_000_000_123


def test_a_lock_is_held_until_it_is_closed_and_is_never_evicted(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=1)
    path = str(tmp_path / ".lock")
    held = fs.lock(path)
    evict(fs, tmp_path)

    with pytest.raises(BlockingIOError):
        DiskFileSystem().lock(path)

    held.close()
    fs.lock(path).close()


def test_a_lock_excludes_a_program_that_locks_as_the_jvm_does(tmp_path: Path) -> None:
    if not hasattr(fcntl, "F_OFD_SETLK"):
        pytest.skip("this platform has no locks of open file descriptions")
    path = str(tmp_path / ".lock")
    held = DiskFileSystem().lock(path)
    attempt = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"

    refused = subprocess.run([sys.executable, "-c", attempt, path], capture_output=True, check=False)
    held.close()
    granted = subprocess.run([sys.executable, "-c", attempt, path], capture_output=True, check=False)

    assert b"BlockingIOError" in refused.stderr
    assert granted.returncode == 0, granted.stderr


def test_free_bytes_are_those_of_the_disk(tmp_path: Path) -> None:
    stat = os.statvfs(tmp_path)

    free = DiskFileSystem().free_bytes(str(tmp_path))

    assert 0 < free <= stat.f_blocks * stat.f_frsize


def test_threads_read_the_right_file_while_others_evict_and_rename(tmp_path: Path) -> None:
    fs = DiskFileSystem(open_files_max=2)
    fs.make_directory(str(tmp_path / "d0"))
    files = [fs.open(str(tmp_path / "d0" / f"{number}"), create=True) for number in range(6)]
    for number, file in enumerate(files):
        file.write(0, [b"%d" % number * 100])
    wrong: list[object] = []
    stop = threading.Event()

    def read_all() -> None:
        try:
            while not stop.is_set():
                for number, file in enumerate(files):
                    if (got := file.read(0, 200)) != b"%d" % number * 100:
                        wrong.append((number, got))
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=read_all) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(300):
        fs.rename(str(tmp_path / f"d{turn}"), str(tmp_path / f"d{turn + 1}"))
        files[turn % 6].rename(str(tmp_path / f"d{turn + 1}" / f"moved{turn}"))
    stop.set()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert fs.open_files <= 2 + len(threads)


# In separate processes, because in this one other threads open and close files.
WITHOUT_ANY_DESCRIPTOR = """
import resource, sys
from barnabas.storage.disk import DiskFileSystem
from barnabas.storage.shortage import is_shortage

fs = DiskFileSystem()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    fs.sync_directory(sys.argv[1])
except OSError as error:
    assert is_shortage(error), error
else:
    raise AssertionError("there is a descriptor")
"""
WITHOUT_A_DESCRIPTOR = """
import errno, os, resource, sys
from barnabas.storage.disk import RELEASED_AT_ONCE, DiskFileSystem

place = sys.argv[1]
fs = DiskFileSystem()
files = [fs.open(f"{place}/{number}", create=True) for number in range(40)]
# Use up all descriptors.
spare = os.open("/", os.O_RDONLY)
os.close(spare)
resource.setrlimit(resource.RLIMIT_NOFILE, (spare, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    os.open("/", os.O_RDONLY)
except OSError as error:
    assert error.errno == errno.EMFILE, error
else:
    raise AssertionError("there is a descriptor")

fs.sync_directory(place)
assert fs.open_files == len(files) - RELEASED_AT_ONCE, fs.open_files
assert fs.read(f"{place}/0") == b""
assert len(fs.entries(place)) == len(files)
for file in files:
    file.write(0, [b"still here"])
"""


def test_unused_files_give_up_descriptors_when_none_are_left(tmp_path: Path) -> None:
    ended = python("-c", WITHOUT_A_DESCRIPTOR, str(tmp_path), cwd=tmp_path)

    assert ended.code == 0, ended.err
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {b"still here"}


def test_the_error_is_raised_if_no_descriptor_can_be_evicted(tmp_path: Path) -> None:
    ended = python("-c", WITHOUT_ANY_DESCRIPTOR, str(tmp_path), cwd=tmp_path)

    assert ended.code == 0, ended.err
