"""What a run of pytest came to, from the report that it wrote as JUnit's XML."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Report:
    """Numbers of tests. failed: also those that could not begin. left_out: by their reason."""

    passed: int = 0
    failed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def read_report(place: Path) -> Report:
    """Nothing passed where pytest ended before it wrote its report."""
    if not place.is_file():
        return Report()
    suites = ElementTree.parse(place).getroot().findall("testsuite")
    cases = [case for suite in suites for case in suite.findall("testcase")]
    reasons = [skip.get("message", "") for case in cases for skip in case.findall("skipped")]
    # One case has both where its test failed and what it leaves behind could not be removed.
    failed = [case for case in cases if case.findall("failure") or case.findall("error")]
    return Report(
        passed=len(cases) - len(reasons) - len(failed),
        failed=len(failed),
        left_out=Counter(reasons),
        seconds=sum(float(suite.get("time", 0)) for suite in suites),
    )
