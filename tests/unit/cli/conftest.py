"""Restore logging after each test: commands configure it for the whole process."""

import logging
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _the_log_stays_as_it_is() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, show = root.handlers[:], root.level, warnings.showwarning
    yield
    logging.captureWarnings(False)
    root.handlers[:], warnings.showwarning = handlers, show
    root.setLevel(level)
