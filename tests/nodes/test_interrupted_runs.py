"""Only a run that came to its end says what it reduced; a defect is an error and no excuse."""

import logging

import pytest
from comfy.patcher_extension import WrappersMP
from token_merge.nodes.hooks.attention import plan_attention


class InterruptedError(Exception):
    pass


@pytest.mark.parametrize("name", ["SD15", "Flux"])
@pytest.mark.parametrize("when", ["before the model", "in the model"])
def test_a_run_that_was_interrupted_reports_nothing(name, when, unet, token_merge, denoise, caplog):
    def interrupt(executor, *args, **kwargs):
        if when == "in the model":
            executor(*args, **kwargs)
        raise InterruptedError

    model = token_merge(unet(name))
    model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "interrupt", interrupt)
    with caplog.at_level(logging.INFO, logger="token_merge"), pytest.raises(InterruptedError):
        denoise(model)
    assert not [record for record in caplog.records if record.name == "token_merge"]


@pytest.mark.parametrize("name", ["SD15", "Flux"])
def test_an_error_in_planning_is_raised(name, unet, token_merge, denoise, monkeypatch):
    def plan_layer(*args):
        raise ValueError("a defect")

    monkeypatch.setattr(plan_attention, "plan_layer", plan_layer)
    with pytest.raises(ValueError, match="a defect"):
        denoise(token_merge(unet(name)))
