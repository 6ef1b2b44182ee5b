"""The table of faster forms: one is found for the devices and tensors that it takes."""

import pytest
import torch
from token_merge.tome_core import faster_forms
from token_merge.tome_core.faster_forms import Form, find_form, why_unavailable

CPU, META = torch.device("cpu"), torch.device("meta")


@pytest.fixture
def double(monkeypatch):
    """A form of an operator, for even numbers on the meta device."""
    form = Form(lambda x: 2 * x, lambda x: x % 2 == 0, lambda device: f"not on {device}", "meta")
    monkeypatch.setitem(faster_forms.FORMS, "double", form)
    return form.compute


def test_a_form_is_found_where_it_takes_the_device_and_the_arguments(double):
    assert find_form("double", META, 4) is double
    assert find_form("double", META, 3) is None
    assert find_form("double", CPU, 4) is None
    assert find_form("triple", META, 4) is None


def test_why_there_is_none_is_what_the_form_says(double):
    assert why_unavailable("double", CPU) == "not on cpu"
    assert why_unavailable("triple", CPU) == "there is no GPU"
