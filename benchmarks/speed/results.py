"""What was measured, as JSON: raw seconds of every round, and the facts of the machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FILE = "results.json"


@dataclass
class Measured:
    """One variant in one case; the lists have one entry per round.

    hook_seconds: of ``seconds``, what went into attention hooks: planning, merging, unmerging.
    peak_bytes: most memory above that in use before the call. lengths: [queries, keys, calls] of
    self-attention in one model call. failed: why there are no (more) numbers.
    """

    name: str
    kind: str
    setting: str | None = None
    seconds: list[float] = field(default_factory=list)
    hook_seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    lengths: list[list[int]] = field(default_factory=list)
    failed: str | None = None


@dataclass
class Case:
    """Variants measured in turn on one input.

    part: unet, steps, graph, attention, transformer, transformer attention, compile, published,
    whole or peers. rows: of the batch of a call, prompt and negative prompt counted. note: what a
    reader has to know. frames: of a video, 1 of a picture.
    """

    part: str
    model: str
    height: int
    width: int
    rows: int
    dtype: str
    note: str = ""
    frames: int = 1
    measured: list[Measured] = field(default_factory=list)

    @property
    def name(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        frames = "" if self.frames == 1 else f", {self.frames} frames"
        return f"{self.model}, {self.width}x{self.height}{frames}, {rows}, {self.dtype}"


@dataclass
class Planning:
    """Seconds of one plan for a layer of ``tokens`` tokens, by method; one entry per round."""

    tokens: int
    channels: int
    dtype: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Similarity:
    """Mean cosine similarity of merged sources to their destinations, over the photographs.

    worst: smallest quotient local / everywhere of any photograph.
    """

    noise: float
    ratio: float
    tokens: int
    local: float
    everywhere: float
    worst: float

    @property
    def kept(self) -> float:
        """Share of the similarity that local matching keeps."""
        return self.local / self.everywhere


@dataclass(frozen=True)
class Correction:
    """Squared error of attention on fewer keys, as a share of whole attention's output squared.

    Means over the photographs. reduction: which keys and values are left. sharpness: factor on
    the scores. prompt_tokens: beside the picture. sharing: among how many keys whole attention
    spreads a query's weight. without, corrected: by the log of the number of tokens that each key
    stands for.
    """

    reduction: str
    noise: float
    sharpness: float
    prompt_tokens: int
    sharing: float
    without: float
    corrected: float


@dataclass
class Results:
    """All cases of one machine."""

    machine: dict[str, Any] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)
    planning: list[Planning] = field(default_factory=list)
    similarity: list[Similarity] = field(default_factory=list)
    correction: list[Correction] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Results:
        """What ``folder`` holds, empty where it holds nothing yet."""
        file = folder / FILE
        if not file.exists():
            return cls()
        data = json.loads(file.read_text(encoding="utf-8"))
        cases = [
            Case(**{**case, "measured": [Measured(**one) for one in case["measured"]]})
            for case in data["cases"]
        ]
        planning = [Planning(**one) for one in data["planning"]]
        similarity = [Similarity(**one) for one in data["similarity"]]
        correction = [Correction(**one) for one in data.get("correction", [])]
        return cls(data["machine"], cases, planning, similarity, correction)

    def write(self, folder: Path) -> None:
        """Replace the file at once, so that an interruption leaves the earlier one whole."""
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f"{FILE}.part"
        scratch.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        scratch.replace(folder / FILE)

    def put(self, case: Case) -> None:
        """Add ``case`` in place of an earlier measurement of the same thing."""
        self.cases = [one for one in self.cases if (one.part, one.name) != (case.part, case.name)]
        self.cases.append(case)

    def put_planning(self, planning: Planning) -> None:
        """Add ``planning`` in place of an earlier one of the same size."""
        self.planning = [one for one in self.planning if one.tokens != planning.tokens]
        self.planning = sorted([*self.planning, planning], key=lambda one: one.tokens)
