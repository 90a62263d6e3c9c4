"""Choice of the member that gets or loses the next partition."""

from barnabas.coordinators.group.assignors.heterogeneous import Scale


def test_it_says_by_how_much_the_heaviest_is_heavier() -> None:
    scale = Scale([5, 1, 3, 9])

    assert scale.weigh([0, 1, 2]) == 4
    assert scale.weigh([2]) == 0


def test_the_lightest_get_one_each_until_they_are_as_heavy_as_the_next() -> None:
    loads = [2, 0, 1, 0]
    scale = Scale(loads)
    scale.weigh([0, 1, 2, 3])

    given = []
    for _ in range(9):
        given.append(scale.lightest())
        loads[given[-1]] += 1

    assert given == [1, 3, 1, 3, 2, 1, 3, 2, 0]


def test_the_heaviest_lose_one_each_until_they_are_as_light_as_the_next() -> None:
    loads = [3, 5, 4, 5]
    scale = Scale(loads)
    scale.weigh([0, 1, 2, 3])

    taken = []
    for _ in range(7):
        heaviest = scale.heaviest()
        assert heaviest is not None
        taken.append(heaviest)
        loads[heaviest] -= 1

    assert taken == [3, 1, 3, 1, 2, 3, 1]


def test_a_member_set_aside_is_no_longer_the_heaviest() -> None:
    loads = [1, 4, 4]
    scale = Scale(loads)
    scale.weigh([0, 1, 2])

    assert scale.heaviest() == 2
    scale.set_aside()
    assert scale.heaviest() == 1
    scale.set_aside()
    assert scale.heaviest() == 0
    scale.set_aside()
    assert scale.heaviest() is None


def test_it_is_balanced_when_heaviest_and_lightest_are_one_apart() -> None:
    loads = [0, 2]
    scale = Scale(loads)
    scale.weigh([0, 1])

    assert (scale.heaviest(), scale.lightest()) == (1, 0)
    assert not scale.balanced
    loads[:] = [1, 1]
    assert (scale.heaviest(), scale.lightest()) == (1, 0)
    assert scale.balanced
