"""What was measured, as JSON: raw seconds of every round, and the facts of the machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FILE = "results.json"


@dataclass
class Measured:
    """One variant in one case.

    seconds: one of each round. peak_bytes: most memory above that in use before the call. lengths:
    [queries, keys, calls] of self-attention in one model call. failed: why there are no (more)
    numbers.
    """

    name: str
    kind: str
    setting: str | None = None
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    lengths: list[list[int]] = field(default_factory=list)
    failed: str | None = None


@dataclass
class Case:
    """Variants measured in turn on one input.

    part: unet, graph, transformer or transformer attention. rows: of the batch of a call, prompt
    and negative prompt counted. note: what a reader has to know. frames: of a video, 1 of a
    picture.
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
class Results:
    """All cases of one machine."""

    machine: dict[str, Any] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)

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
        return cls(data["machine"], cases)

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
