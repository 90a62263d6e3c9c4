"""A benchmark refuses a row whose run measured nothing."""

import math
import runpy
from pathlib import Path

import pytest

REPORT = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "report.py"))
Row, NothingMeasured = REPORT["Row"], REPORT["NothingMeasured"]


@pytest.mark.parametrize(
    ("ours", "theirs"), [(0.0, 1.5), (1.5, 0.0), (-0.1, 1.5), (math.nan, 1.5), (1.5, math.inf)]
)
def test_a_figure_that_no_run_can_have_is_refused(ours: float, theirs: float) -> None:
    with pytest.raises(NothingMeasured, match="consume 1 kB lz4, Arrow: nothing was measured"):
        Row("consume 1 kB lz4, Arrow", ours, theirs, "confluent", "M records/s", 1.0)


def test_a_count_may_be_zero() -> None:
    row = Row("read through user space", 0.0, 3.0, "Kafka", "MB/GB", 1000.0, may_be_zero=True)

    assert row.ours == 0
    with pytest.raises(NothingMeasured):
        Row("read through user space", -1.0, 3.0, "Kafka", "MB/GB", 1000.0, may_be_zero=True)
