"""A context can go into the weights of our blocks."""
import pytest
import torch
from ctxc.testing import assert_controllable

from block import Block, Normed


@pytest.mark.parametrize("kind", [Block, Normed])
def test_contexts_go_into_the_weights(kind):
    assert_controllable(kind(), torch.zeros(1, 13, 64))
