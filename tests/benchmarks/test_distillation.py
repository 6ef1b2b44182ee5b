"""A model for four steps: what it has to learn, how it is made, kept and measured."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import nn

from benchmarks.quality import cli, options, places, regimes, sampling
from benchmarks.quality.report import Report
from benchmarks.quality.variants import list_variants
from benchmarks.random_models import fill_weights
from benchmarks.trained import distillation, eight_bits, recipe, weights
from benchmarks.trained.batches import Batches
from benchmarks.trained.distil import DistillationRun, distil
from benchmarks.trained.distillation import STEPS, STEPS_OF_TEACHER, Distillation
from benchmarks.trained.examples import SOURCES
from benchmarks.trained.flux import FluxShape
from benchmarks.trained.network import Shape, build_network
from benchmarks.trained.recipe import Recipe, Stage
from benchmarks.trained.state import TrainingState
from benchmarks.trained.training import Trainer
from benchmarks.trained.unet import UNetShape
from benchmarks.trained.wan import WanShape

MODEL = "flux-4-steps"
NARROW = FluxShape(1, 1, 1)
CPU = torch.device("cpu")
QUIET = Console(quiet=True)
SHORT = Recipe((Stage(8, 2, 2), Stage(12, 2, 2)), warm_up=1)


def save_teacher(place: Path, shape: Shape = NARROW, seed: int = 0) -> Path:
    """A network that answers something, which an untrained one does not."""
    scales = torch.ones(12)
    network = build_network(shape, scales).model.diffusion_model
    network.requires_grad_(False)
    fill_weights(network, torch.Generator().manual_seed(seed))
    weights.save(place, weights.halve(network.state_dict()), scales, shape)
    return place


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_teacher(tmp_path_factory.mktemp("teacher") / "weights.safetensors")


@dataclass
class Recorded:
    """A network's answers, kept."""

    network: nn.Module
    answers: list[torch.Tensor] = field(default_factory=list)

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        self.answers.append(self.network(*args, **kwargs).float())
        return self.answers[-1]


def test_a_segments_target_is_the_mean_velocity_of_the_teachers_steps(teacher: Path) -> None:
    model = weights.load(teacher)
    recorded = Recorded(model.model.diffusion_model)
    schedule = model.get_model_object("model_sampling")
    before = torch.randn(STEPS, 12, 8, 8, generator=torch.Generator().manual_seed(0))
    context = torch.randn(STEPS, 77, 128, generator=torch.Generator().manual_seed(1))
    levels = distillation.list_segments(schedule).T  # every segment at once
    after = distillation.walk(recorded, schedule, levels, before, context)
    target = distillation.compute_segment_target(schedule, levels[0], levels[-1], before, after)
    velocities = torch.stack(recorded.answers)  # (steps, B, C, H, W)
    assert len(velocities) == STEPS_OF_TEACHER
    shares = levels.diff(dim=0) / (levels[-1] - levels[0])
    mean = torch.einsum("sb,sb...->b...", shares, velocities)
    torch.testing.assert_close(target, mean, atol=1e-4, rtol=1e-4)
    assert (velocities - mean).abs().max() > 0.01  # the steps differ, so the mean says something


@pytest.mark.parametrize("shape", [UNetShape(32, 32), NARROW, WanShape(1, 1)])
def test_one_euler_step_by_the_target_leads_to_the_end_of_the_segment(shape: Shape) -> None:
    schedule = build_network(shape, torch.ones(12)).get_model_object("model_sampling")
    before, after = torch.randn(2, 3, 12, 4, 4, generator=torch.Generator().manual_seed(0))
    sigmas = schedule.sigmas[torch.tensor([300, 600, 900])]
    following = torch.tensor([0.0, *sigmas[:2].tolist()])
    target = distillation.compute_segment_target(schedule, sigmas, following, before, after)
    denoised = schedule.calculate_denoised(sigmas, target, before)
    own, end = sigmas.view(-1, 1, 1, 1), following.view(-1, 1, 1, 1)
    step = before + (before - denoised) / own * (end - own)
    torch.testing.assert_close(step, after, atol=1e-3, rtol=1e-3)


def test_the_student_learns_the_noise_levels_that_comfyui_samples_it_at(teacher: Path) -> None:
    model = weights.load(teacher)
    segments = distillation.list_segments(model.get_model_object("model_sampling"))
    regime = regimes.find_default(MODEL)
    assert regime.cfg == 1
    levels = sampling.noise_levels(model, regime)
    torch.testing.assert_close(segments[:, 0], levels[:-1])
    torch.testing.assert_close(segments[:, -1], levels[1:])


@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 1e-3), (torch.float32, 1e-9)])
def test_the_teacher_walks_as_comfyui_samples_in_single_precision(
    teacher: Path, dtype: torch.dtype, error: float
) -> None:
    model = weights.load(teacher)
    schedule = model.get_model_object("model_sampling")
    prompts = torch.randn(2, 77, 128, generator=torch.Generator().manual_seed(0))
    batch = sampling.Batch(prompts, prompts[:1], (0, 1), sampling.square(8))
    steps = STEPS * STEPS_OF_TEACHER
    sampled = sampling.sample(model, batch, regimes.find_default(MODEL).with_steps(steps)).latent
    state = batch.noise()
    for segment in distillation.list_segments(schedule):
        levels = segment[:, None].expand(-1, 2)
        network = model.model.diffusion_model
        state = distillation.walk(network, schedule, levels, state, prompts, dtype)
    assert (state - sampled).square().mean() < error * sampled.var()


def test_a_student_comes_nearer_to_its_teachers_runs(teacher: Path, tmp_path: Path) -> None:
    longer = Recipe((Stage(8, 4, 20),), rate=2e-3, last_rate=1e-4, warm_up=2)
    data = SOURCES["flux"].load(tmp_path, 8, 0)
    student, model = weights.load(teacher), weights.load(teacher)
    network = student.model.diffusion_model
    objective = Distillation(
        Batches.make(student, data, longer, tmp_path), model.model.diffusion_model
    )
    # Another seed draws other noise than the training did.
    unseen = replace(objective, batches=replace(objective.batches, recipe=replace(longer, seed=1)))
    with torch.no_grad():
        first = unseen.compute_loss(network, 0, CPU)
    state = TrainingState.start(network, longer)
    Trainer(objective, longer).run(state, lambda state: None)
    with torch.no_grad():
        last = unseen.compute_loss(network, 0, CPU)
    assert last < 0.7 * first


def test_a_stopped_distillation_ends_with_the_weights_of_one_that_was_not(
    teacher: Path, tmp_path: Path
) -> None:
    before = teacher.read_bytes()
    ends = []
    for name, stops in (("whole", (None,)), ("stopped", (3, None))):
        run = DistillationRun(SHORT, tmp_path / name, CPU, MODEL, teacher, examples=8)
        place = tmp_path / name / "student.safetensors"
        for stop in stops:
            state = distil(run, place, QUIET, until=stop)
        ends.append(state)
    assert ends[0].losses == pytest.approx(ends[1].losses, rel=1e-5)
    for name, weight in ends[0].average_weights().items():
        torch.testing.assert_close(ends[1].average_weights()[name], weight)
    assert teacher.read_bytes() == before
    assert place.stat().st_size < 0.7 * teacher.stat().st_size
    changed = weights.fingerprint(weights.load(place))
    assert changed != weights.fingerprint(weights.load(teacher))


def test_another_teacher_begins_another_distillation(teacher: Path, tmp_path: Path) -> None:
    other = save_teacher(tmp_path / "other.safetensors", seed=1)
    for place, steps in ((teacher, 2), (other, 1), (teacher, 3)):
        run = DistillationRun(SHORT, tmp_path, CPU, MODEL, place, examples=8)
        state = distil(run, tmp_path / "student.safetensors", QUIET, until=steps)
        assert len(state.losses) == steps


def test_matrices_in_eight_bits_are_a_step_from_what_they_were() -> None:
    weight = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0))
    weight[1] = 0
    packed = eight_bits.pack({"a": weight, "b": torch.arange(3.0)})
    assert packed["a"].dtype == torch.int8
    found = eight_bits.unpack({name: tensor.float() for name, tensor in packed.items()})
    assert set(found) == {"a", "b"}
    torch.testing.assert_close(found["b"], torch.arange(3.0))
    half_a_step = weight.flatten(1).abs().amax(1).view(-1, 1, 1) / 127 / 2
    assert ((found["a"] - weight).abs() <= 1.001 * half_a_step).all()


def test_the_command_makes_a_student_that_is_measured_like_the_others(
    teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(SOURCES, "flux", replace(SOURCES["flux"], count=8))
    monkeypatch.setitem(recipe.DISTILLED, MODEL, replace(SHORT, stages=(Stage(8, 2, 2),)))
    student = tmp_path / "student.safetensors"
    common = ["--weights", str(student), "--kept", str(tmp_path)]
    assert cli.main(["distil", "--teacher", str(teacher), *common], tmp_path) == 0
    assert "dB with 4 of the teacher" in " ".join(capsys.readouterr().out.split())
    words = ["measure", "--model", MODEL, "--tokens", "8", "--pairs", "1", *common]
    words += ["--out", str(tmp_path / "results"), "--parts", "predictions"]
    assert cli.main([*words, "--only", "Token Downsample ×2"], tmp_path) == 0
    report = Report.read(tmp_path / "results" / "euler-simple-4-cfg1" / "results.json")
    assert report.model["fingerprint"] == weights.fingerprint(weights.load(student))
    (one,) = (one for one in report.variants if one.velocity_error)
    assert one.name == "Token Downsample ×2" and len(one.velocity_error) == 4


def test_a_student_is_held_against_fewer_steps_and_not_against_more() -> None:
    found = options.parse(["measure", "--model", MODEL], Path())
    assert (found.kind, found.regimes) == ("flux", [regimes.FOUR_STEPS])
    steps = [one.steps for one in list_variants(MODEL, regimes.FOUR_STEPS) if one.steps]
    assert steps == [3, 2]


def test_results_of_the_student_are_not_taken_for_the_teachers(tmp_path: Path) -> None:
    models = ("unet", "flux", "wan", MODEL)
    for model in models:
        (tmp_path / places.find_results(model, 32).name).mkdir()
    for model in models:
        (found,) = places.list_results(tmp_path, model)
        assert found.name == places.find_results(model, 32).name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "flux"], "invalid choice: 'flux'"),
        (["--teacher", "same", "--weights", "same"], "which the teacher is read from"),
    ],
)
def test_a_mistake_in_the_command_is_named(
    words: list[str], said: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as raised:
        options.parse(["distil", *words], Path())
    assert raised.value.code == 2
    assert said in capsys.readouterr().err


def test_a_teacher_that_cannot_teach_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "text.safetensors").write_text("no weights")
    save_teacher(tmp_path / "clips.safetensors", WanShape(1, 1))
    for name, said in (
        ("missing", "is missing"),
        ("text", "is no file of our weights"),
        ("clips", "is of the kind 'wan', expected 'flux'"),
    ):
        place = tmp_path / f"{name}.safetensors"
        words = ["distil", "--teacher", str(place), "--weights", str(tmp_path / "student")]
        assert cli.main(words, tmp_path) == 1
        assert said in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "student").exists()
