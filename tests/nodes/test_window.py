"""Which steps are reduced: by the model's own map from schedule share to sigma."""

import comfy.samplers
import pytest
import torch
from comfy_extras.nodes_model_advanced import ModelSamplingSD3


def reduced_steps(attention_log, steps: int) -> list[bool]:
    """Per step, whether the three finest self-attention layers of SD15 were merged."""
    finest = [q for q, k in attention_log.lengths if k in (128, 256)]
    per_step = [set(finest[i : i + 3]) for i in range(0, len(finest), 3)]
    assert len(per_step) == steps
    return [lengths == {128} for lengths in per_step]


@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.5), (0.5, 1.0), (0.3, 0.6)])
def test_a_step_is_reduced_where_its_sigma_lies_in_the_window(
    window, unet, tome, denoise, attention_log
):
    steps = 6
    model = tome(unet("SD15"), start_percent=window[0], end_percent=window[1])
    denoise(attention_log.watch(model), steps=steps)
    sampling = model.model.model_sampling
    first, last = (sampling.percent_to_sigma(percent) for percent in window)
    sigmas = comfy.samplers.calculate_sigmas(sampling, "normal", steps)[:-1].tolist()
    assert reduced_steps(attention_log, steps) == [last < sigma <= first for sigma in sigmas]


def test_an_inactive_window_is_bit_equal_to_the_original(unet, token_merge, denoise):
    model = token_merge(
        unet("SD15"),
        start_percent=0.998,
        end_percent=0.999,
        merge_mlp=True,
        merge_cross_attention=True,
    )
    assert torch.equal(denoise(model), denoise(unet("SD15")))


@pytest.mark.parametrize("shift", [0.01, 1.0, 1.32, 2.14, 3.0, 4.03, 8.06, 20.0])
def test_the_first_step_is_reduced_whatever_the_flow_shift(shift, flux, token_merge, denoise):
    """Rounding puts the first sigma of some shifts just above 1."""
    model = ModelSamplingSD3().patch(flux, shift)[0]
    unpatched = denoise(model, steps=1)
    assert not torch.equal(denoise(token_merge(model, end_percent=0.5), steps=1), unpatched)


def test_the_model_is_asked_once_a_run_where_a_window_lies(unet, token_merge, denoise, monkeypatch):
    model = token_merge(unet("SD15"), start_percent=0.2, end_percent=0.8)
    sampling = model.model.model_sampling
    asked = []
    percent_to_sigma = sampling.percent_to_sigma

    def note(percent):
        asked.append(percent)
        return percent_to_sigma(percent)

    monkeypatch.setattr(sampling, "percent_to_sigma", note)
    denoise(model, steps=5)
    assert sorted(asked) == [0.2, 0.8]
