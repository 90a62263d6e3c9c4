"""The progress line shows at a terminal and nowhere else."""

from io import StringIO

from barnabas.cli.progress import WIDTH_MAX, Progress, progress_line


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_has_progress_and_rate() -> None:
    assert progress_line("records", 1_500, 6_000, 2.0) == "1,500 of 6,000 records (25 %), 750/s"
    assert progress_line("records", 1_500, None, 2.0) == "1,500 records, 750/s"


def test_a_line_fits_on_a_terminal() -> None:
    assert len(progress_line("records" * 20, 1, None, 1.0)) == WIDTH_MAX


def test_a_pipe_gets_nothing() -> None:
    pipe = StringIO()
    progress = Progress("records", 10, to=pipe)

    progress.update(5)
    progress.clear()

    assert pipe.getvalue() == ""


def test_the_line_is_drawn_at_a_terminal_and_erased() -> None:
    terminal = Terminal()
    progress = Progress("records", 10, to=terminal)

    progress.update(5)
    shown = terminal.getvalue()
    progress.clear()
    progress.clear()

    assert shown.startswith("\r\x1b[K5 of 10 records (50 %)")
    assert terminal.getvalue() == shown + "\r\x1b[K"


def test_the_line_is_not_drawn_for_every_record() -> None:
    terminal = Terminal()
    progress = Progress("records", 1000, to=terminal)

    for done in range(1000):
        progress.update(done)

    assert terminal.getvalue().count("\r") < 10
