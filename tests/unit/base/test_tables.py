"""A dict that has lost most of its entries returns their memory."""

import sys

from barnabas.base.memory import shrink


def test_a_dict_that_loses_its_entries_becomes_small() -> None:
    table = {str(number): number for number in range(10_000)}
    full = sys.getsizeof(table)
    sizes = []

    while len(table) > 100:
        del table[next(reversed(table))]
        shrink(table)
        sizes.append(sys.getsizeof(table))

    assert table == {str(number): number for number in range(100)}
    assert sizes[-1] < full / 5
    # It is not rebuilt all the time.
    assert len(set(sizes)) < 5


def test_a_dict_that_is_in_use_stays_as_it_is() -> None:
    table = {str(number): number for number in range(10_000)}
    full = sys.getsizeof(table)

    for number in range(5_000):
        del table[str(number)]
        shrink(table)

    assert sys.getsizeof(table) == full
    assert list(table) == [str(number) for number in range(5_000, 10_000)]
