"""Compare Token Reduction samples as KSampler does, with two models, and says what differs."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import comfy.model_management
import pytest
import torch
from comfy.model_management import InterruptProcessingException
from comfy.model_patcher import ModelPatcher
from comfy.nested_tensor import NestedTensor
from comfy.patcher_extension import WrappersMP
from token_merge import comfy_entrypoint
from token_merge.nodes import compare as compare_node
from token_merge.nodes.comparison import run
from token_merge.nodes.comparison.report import split_streams
from token_merge.nodes.hooks.run.node_text import RUNNING, STOPPED

import nodes as comfyui_nodes

SAMPLING = {
    "seed": 7,
    "steps": 3,
    "cfg": 4.0,
    "sampler_name": "euler",
    "scheduler": "normal",
    "denoise": 1.0,
}
NAMES = ("unpatched", "patched", "report")


def find_node() -> Any:
    found = asyncio.run(asyncio.run(comfy_entrypoint()).get_node_list())
    return next(node for node in found if node.GET_SCHEMA().node_id == "TokenReductionCompare")


def conditioning(seed: int) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    pooled = torch.randn(1, 1280, generator=generator)
    return [[torch.randn(1, 7, 32, generator=generator), {"pooled_output": pooled}]]


def make_inputs(latent: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Of KSampler and of our node, but for the models."""
    return {
        **SAMPLING,
        "positive": conditioning(1),
        "negative": conditioning(2),
        "latent_image": latent or {"samples": torch.zeros(1, 4, 16, 16)},
        **changes,
    }


def compare(model: ModelPatcher, patched: ModelPatcher, **inputs: Any) -> dict[str, Any]:
    """The outputs of our node by name."""
    result = find_node().execute(model=model, patched_model=patched, **make_inputs(**inputs))
    return dict(zip(NAMES, result.args, strict=True))


def ksampler(model: ModelPatcher, **inputs: Any) -> dict[str, Any]:
    return comfyui_nodes.KSampler().sample(model, **make_inputs(**inputs))[0]


def random_latent(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(3))


LATENTS = {
    "empty": {"samples": torch.zeros(1, 4, 16, 16)},
    "empty, for another VAE": {
        "samples": torch.zeros(1, 4, 8, 8),
        "downscale_ratio_spacial": 16,
    },
    "batch": {"samples": random_latent(2, 4, 16, 16)},
    "one of a batch": {"samples": random_latent(1, 4, 16, 16), "batch_index": [3]},
    "masked": {
        "samples": random_latent(1, 4, 16, 16),
        "noise_mask": torch.arange(128 * 128).reshape(1, 128, 128) % 2.0,
    },
}


OTHERS = {"denoise": 0.6, "sampler_name": "euler_ancestral"}


@pytest.mark.parametrize(
    ("latent", "changes"),
    [
        pytest.param(LATENTS["empty"], {}, id="empty"),
        pytest.param(LATENTS["masked"], OTHERS, id="masked"),
        *(
            pytest.param(LATENTS[name], changes, id=name, marks=pytest.mark.thorough)
            for name, changes in (
                ("empty, for another VAE", {}),
                ("batch", {}),
                ("batch", OTHERS),
                ("one of a batch", OTHERS),
            )
        ),
    ],
)
def test_results_are_those_of_ksampler_bit_for_bit(latent, changes, unet, token_merge):
    model, patched = unet("SD15"), token_merge(unet("SD15"))
    given = dict(latent)
    outputs = compare(model, patched, latent=latent, **changes)
    for name, contender in (("unpatched", model), ("patched", patched)):
        expected = ksampler(contender, latent=latent, **changes)
        assert outputs[name].keys() == expected.keys()
        assert torch.equal(outputs[name]["samples"], expected["samples"])
    assert not torch.equal(outputs["unpatched"]["samples"], outputs["patched"]["samples"])
    assert latent == given


def test_inputs_are_those_of_ksampler_in_its_order():
    ours, theirs = find_node().GET_NODE_INFO_V1(), comfyui_nodes.KSampler.INPUT_TYPES()
    required = dict(ours["input"]["required"])
    assert [required.pop(name)[0] for name in ("model", "patched_model")] == ["MODEL", "MODEL"]
    expected = theirs["required"]
    expected.pop("model")
    assert list(required) == list(expected)
    for name, (kind, said, *_) in expected.items():
        options = required[name][1]
        if isinstance(kind, list):
            assert options["options"] == kind
        else:
            assert required[name][0] == kind
        changed = {"control_after_generate": False} if name == "seed" else {}
        assert {key: options.get(key) for key in said} == {**said, **changed}


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """What the node wrote on itself."""
    found: list[str] = []
    monkeypatch.setattr(compare_node, "write_on_node", lambda node, text: found.append(text))
    return found


def test_the_report_is_on_the_node_and_in_the_history(unet, written):
    inputs = make_inputs(steps=1)
    output = find_node().execute(model=unet("SD15"), patched_model=unet("SD15"), **inputs)
    assert written == [RUNNING, output.args[NAMES.index("report")]]
    assert output.ui.value == written[-1]


def test_equal_models_are_identical(unet):
    outputs = compare(unet("SD15"), unet("SD15").clone())
    assert outputs["report"].startswith("The latents are identical: patched_model is not patched")
    assert torch.equal(outputs["unpatched"]["samples"], outputs["patched"]["samples"])


def test_a_model_that_is_connected_to_both_inputs_is_not_called_unreduced(unet, token_merge):
    patched = token_merge(unet("SD15"))
    report = compare(patched, patched)["report"]
    said = (
        "The latents are identical: the input model has our nodes, too. Connect the unpatched "
        "model to it\n"
    )
    assert report.startswith(said)
    assert "attention computes" in report


def test_the_report_holds_what_a_bug_report_needs(unet, token_merge):
    report = compare(unet("SD15"), token_merge(unet("SD15")))["report"]
    assert re.match(
        r"\d\.\d\dx.* \(\d\.\d\d to \d\.\d\d\), \d+\.\d dB \([a-z ]+\)$", report.splitlines()[0]
    )
    for text in (
        "Seconds per step: unpatched ",
        "Difference of the latents: PSNR ",
        "Peak memory: unpatched -, patched -, not measured on this device",
        "Model: BaseModel, float32",
        "Latent: 1 x 4 x 16 x 16",
        "Sampling: 3 steps, cfg 4, euler, normal, denoise 1, seed 7",
        "Device: cpu",
        f"torch {torch.__version__}",
        "ComfyUI 0.",
        "Token Merge 0.",
    ):
        assert text in report, text


def test_the_report_says_what_each_of_our_nodes_did(unet, tome, token_downsample):
    patched = token_downsample(tome(unet("SD15"), target="queries"))
    report = compare(unet("SD15"), patched)["report"]
    assert "Token Merge: 3 layers: 256 tokens, attention computes 128 queries\n" in report
    assert "Token Downsample: 3 layers: 256 tokens, attention reads 64 keys\n" in report


def test_the_report_says_what_was_skipped_and_why(unet, token_merge):
    latent = {"samples": torch.zeros(1, 4, 1, 32)}
    report = compare(unet("SD15"), token_merge(unet("SD15")), latent=latent)["report"]
    assert "Token Merge: 3 layers skipped: grid 1x32 is smaller than one 2x2 cell" in report


def test_the_report_says_where_none_of_our_nodes_is_at_work(unet):
    patched = unet("SD15").clone()
    patched.set_model_sampler_post_cfg_function(lambda args: args["denoised"] * 0.9)
    report = compare(unet("SD15"), patched)["report"]
    assert "patched_model: has none of the nodes of this pack at work" in report
    assert "identical" not in report


def test_the_report_says_where_our_nodes_are_on_the_unpatched_model_too(unet, token_merge):
    report = compare(token_merge(unet("SD15"), ratio=0.2), token_merge(unet("SD15")))["report"]
    assert "Token Merge on the unpatched model: " in report


def test_a_sampling_without_steps_has_no_time(unet, token_merge):
    report = compare(unet("SD15"), token_merge(unet("SD15")), denoise=0.0)["report"]
    assert "Seconds per step" not in report


@pytest.mark.parametrize("steps", [1, 3])
def test_every_step_is_timed(steps, unet, token_merge, monkeypatch):
    """The first, too: by default a transformer's is exact, and slower than the others."""
    found = []
    describe = compare_node.describe_results
    monkeypatch.setattr(
        compare_node, "describe_results", lambda *both: found.extend(both) or describe(*both)
    )
    compare(unet("SD15"), token_merge(unet("SD15")), steps=steps)
    assert [len(each.seconds) for runs in found for each in runs] == 4 * [steps]
    assert all(second > 0 for runs in found for each in runs for second in each.seconds)


def test_an_input_that_the_node_lacks_is_refused_by_name(unet):
    with pytest.raises(ValueError, match="no_such_input is no input of this node, expected only"):
        compare(unet("SD15"), unet("SD15"), no_such_input=1)


def test_what_is_no_model_is_refused_by_name(unet):
    for model, patched, name in ((1, unet("SD15"), "model"), (unet("SD15"), 1, "patched_model")):
        with pytest.raises(TypeError, match=f"^{name} is int, expected a MODEL"):
            compare(model, patched)


def test_nothing_to_denoise_is_no_error_and_said(unet, token_merge):
    outputs = compare(unet("SD15"), token_merge(unet("SD15")), denoise=0.0)
    verdict = "Nothing was compared: with denoise 0 no step is sampled, and no model runs\n"
    assert outputs["report"].startswith(verdict)
    assert "none of the nodes" not in outputs["report"]
    assert torch.equal(outputs["unpatched"]["samples"], torch.zeros(1, 4, 16, 16))


def test_a_latent_that_the_unpatched_model_makes_constant_gives_no_psnr(unet):
    """What is left of the last step differs by rounding alone."""
    unpatched = unet("SD15").clone()
    unpatched.set_model_sampler_post_cfg_function(lambda args: torch.full_like(args["denoised"], 3))
    outputs = compare(unpatched, unet("SD15"))
    assert "Difference of the latents: no PSNR, all values of the unpatched" in outputs["report"]


def test_results_of_different_sizes_are_not_compared(unet):
    def crop(executor: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        return executor(*args, **kwargs)[..., :8]

    patched = unet("SD15").clone()
    patched.add_wrapper_with_key(WrappersMP.OUTER_SAMPLE, "crop", crop)
    report = compare(unet("SD15"), patched)["report"]
    assert "not comparable, the sizes differ" in report


def test_models_take_turns_so_that_neither_comes_late(unet):
    turns = []

    def noting(name: str) -> ModelPatcher:
        model = unet("SD15").clone()

        def note(executor: Any, *args: Any, **kwargs: Any) -> Any:
            turns.append(name)
            return executor(*args, **kwargs)

        model.add_wrapper_with_key(WrappersMP.OUTER_SAMPLE, "note", note)
        return model

    compare(noting("unpatched"), noting("patched"))
    warm_up = ["unpatched", "patched"]
    assert turns == [*warm_up, "unpatched", "patched", "patched", "unpatched"]


@pytest.fixture
def progress(monkeypatch) -> list[tuple[int, int]]:
    """What the page's progress bar is told: (done, of how many)."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(
        comfy.utils, "PROGRESS_BAR_HOOK", lambda done, total, *rest, **_: told.append((done, total))
    )
    monkeypatch.setattr(comfy.utils, "PROGRESS_THROTTLE_MIN_INTERVAL", 0)
    return told


def test_one_progress_bar_shows_all_steps_of_all_runs(progress, unet):
    compare(unet("SD15"), unet("SD15"))
    total = (2 + 4) * SAMPLING["steps"]
    assert SAMPLING["steps"] <= run.WARM_UP_STEPS
    assert progress == [(number + 1, total) for number in range(total)]


def test_an_interrupt_ends_the_node_and_leaves_nothing_behind(
    progress, monkeypatch, unet, token_merge, written
):
    model, patched = unet("SD15"), token_merge(unet("SD15"))
    expected = ksampler(patched)["samples"]
    before = torch.get_rng_state()
    wrappers = str([each.wrappers for each in (model, patched)])
    told = progress.append

    def interrupt(done: int, total: int, *rest: Any, **_: Any) -> None:
        told((done, total))
        if done == 9:
            comfy.model_management.interrupt_current_processing()

    monkeypatch.setattr(comfy.utils, "PROGRESS_BAR_HOOK", interrupt)
    with pytest.raises(InterruptProcessingException):
        compare(model, patched)
    assert progress[-1][0] == 9, "another step was done"
    assert written == [RUNNING, STOPPED]
    assert not comfy.model_management.processing_interrupted()
    assert torch.equal(torch.get_rng_state(), before)
    assert str([each.wrappers for each in (model, patched)]) == wrappers
    assert torch.equal(ksampler(patched)["samples"], expected)


def test_the_users_random_state_is_untouched(unet, token_merge):
    before = torch.get_rng_state()
    compare(unet("SD15"), token_merge(unet("SD15")), sampler_name="dpmpp_sde")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_latent_of_picture_and_sound_is_compared():
    """Some models sample both at once."""
    picture, sound = random_latent(1, 4, 2, 8, 8), random_latent(1, 8, 16)
    both = NestedTensor([picture, sound])
    watch = run.StepWatch(lambda *_: None)
    for step in range(2):
        watch.begin(lambda x: x, both)
        watch.end(step, both, both, 2)
    assert len(watch.seconds) == 2
    assert [stream.shape for stream in split_streams(both)] == [picture.shape, sound.shape]


def test_peak_memory_is_read_on_a_gpu_only(monkeypatch):
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3 * 2**30)
    run.forget_peak(torch.device("cpu"))
    assert run.read_peak(torch.device("cpu")) is None
    run.forget_peak(torch.device("cuda"))
    assert run.read_peak(torch.device("cuda")) == 3 * 2**30
