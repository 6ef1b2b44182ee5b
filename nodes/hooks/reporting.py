"""What is said of a run: in the console, on the nodes, and to listeners."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from .model_call import Attached, Run
from .page import write_on_node
from .run_report import RunSummary

logger = logging.getLogger("token_merge")

SECONDS_BETWEEN = 5.0
"""Of the texts on a node while a run goes on."""


def is_progress_due(run: Run) -> bool:
    return time.monotonic() - run.told >= SECONDS_BETWEEN


def tell_progress(attached: Attached, run: Run, step: int) -> None:
    """On the nodes alone, to be called every few seconds."""
    run.told = time.monotonic()
    where = f"step {step + 1} of {len(run.sigmas) - 1}"
    for node in attached.stack.nodes:
        outcome = run.report.describe(node.settings)
        write_on_node(node.node_id, _lay_out(outcome.done, (*outcome.left, *node.remarks), where))


def tell_end(attached: Attached, run: Run) -> None:
    """Everything, once."""
    said: list[tuple[str, str]] = []
    for node in attached.stack.nodes:
        settings, name = node.settings, node.settings.node_name
        outcome = run.report.describe(settings)
        idle = run.report.explain_idle(settings, attached.stack.explain_idle(settings))
        left = [*outcome.left, *node.remarks, *filter(None, [idle])]
        for line in outcome.done:
            logger.info("%s: %s.", name, line)
        for line in left:
            logger.warning("%s: %s.", name, line)
        seconds = run.clock.describe(settings, len(run.sigmas) - 1)
        write_on_node(node.node_id, _lay_out(outcome.done, left, seconds))
        said += [(name, line) for line in (*outcome.done, *left)]
    for listener in attached.listeners:
        listener(RunSummary(tuple(said)))


def tell_stop(attached: Attached) -> None:
    """On the nodes alone: what stood there is no longer true."""
    for node in attached.stack.nodes:
        write_on_node(node.node_id, "the run was stopped before its end")


def _lay_out(done: Sequence[str], left: Sequence[str], time_taken: str) -> str:
    """The text on a node: what was left out comes first, then what was done and the time it took.

    The page's classic nodes do not grow with their text: a new one shows two lines, and the rest by
    scrolling.
    """
    last = "; ".join(filter(None, [*done[-1:], time_taken]))
    return "\n".join(filter(None, [*left, *done[:-1], last]))
