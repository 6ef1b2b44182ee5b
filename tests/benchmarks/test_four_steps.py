"""The published model for four steps."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

from safetensors import safe_open

from benchmarks.quality import distance_to_teacher, regimes
from benchmarks.quality.pairs import Pairs
from benchmarks.trained import log, weights
from benchmarks.trained.places import TEACHERS, WEIGHTS, find_training_log
from benchmarks.trained.recipe import DISTILLED

MODEL = "flux-4-steps"
STUDENT, TEACHER = WEIGHTS[MODEL], WEIGHTS[TEACHERS[MODEL]]


def test_it_is_made_from_the_published_teacher_by_the_published_recipe() -> None:
    with safe_open(STUDENT, "pt") as file:
        teacher = json.loads(file.metadata()["teacher"])
    assert teacher == weights.fingerprint(weights.load(TEACHER))
    (part,) = log.read(find_training_log(STUDENT))
    assert part.recipe == DISTILLED[MODEL]
    assert len(part.losses) == part.recipe.steps


def test_its_four_steps_are_nearer_to_many_steps_than_four_of_its_teacher(tmp_path: Path) -> None:
    pairs = Pairs.make(4, 16, tmp_path, held_out=4)
    models = weights.load(TEACHER), weights.load(STUDENT)
    student, teacher = distance_to_teacher.compare(*models, pairs, regimes.find_default(MODEL))
    assert mean(student) > mean(teacher) + 1
