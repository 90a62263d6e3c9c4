"""The list of kernels names real modules, and says truly whether they are compiled."""

from importlib import import_module

import pytest

from barnabas.base.kernels import GENERATED, KERNELS, compiled_kernels
from barnabas.protocol.tuned.generate import families

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_compiled_if_and_only_if_it_says_so(name: str) -> None:
    if name in GENERATED and not compiled_kernels()[name]:
        pytest.skip("the build writes this module")
    module = import_module(name)

    assert module.__file__ is not None
    assert compiled_kernels()[name] == module.__file__.endswith(".so")


def test_there_is_one_answer_for_all_kernels() -> None:
    assert len(set(compiled_kernels().values())) == 1, compiled_kernels()


def test_every_family_with_tuned_messages_is_a_kernel() -> None:
    assert [f"barnabas.protocol.generated.{family}" for family in families()] == list(GENERATED)
