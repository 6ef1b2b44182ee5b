"""What is said of a run: on the nodes of the page, in the console, and to listeners."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from comfy_api.latest import io

from ....tome_core.settings import Settings
from .state import Attached, Run, find_attached

logger = logging.getLogger("token_merge")

NOTHING = "no layer was reduced in this run"
KERNELS = "Preparing our kernels for this GPU, once: some seconds"

RUNNING, STOPPED = "Running", "The run was stopped before its end"
"""These stand on a node while nothing is known of a run yet, and after one that has no end."""

SECONDS_BETWEEN = 5.0
"""While a run goes on, the texts on the nodes are as old as this at most."""

LINE_BREAK = "  \n"
"""The page shows the text as HTML on its classic nodes and as Markdown on its newer ones, where a
single line feed is a space. A line break in both is two spaces and a line feed."""

END = "  "
"""Our texts end so. By this ``web/earlier_text.js`` knows them, and takes them off other nodes."""

SETTLED = END + " "
"""A text ends so that is true of every run of the node's model, until an input changes."""

LETTERS = 36
"""A line on a classic node that was just placed has room for so many: the page breaks longer lines
within words."""


def report_start(attached: Attached) -> None:
    """On the nodes alone: what stands there is of an earlier run."""
    for node in attached.stack.nodes:
        write_on_node(node.node_id, RUNNING)


def report_progress(attached: Attached, run: Run) -> None:
    """On the nodes alone, every few seconds."""
    if time.monotonic() - run.reported_at < SECONDS_BETWEEN:
        return
    run.reported_at = time.monotonic()
    for node in attached.stack.nodes:
        report, settings = run.report, node.settings
        left = [*report.list_left(settings), *_list_remarks(attached, settings)]
        done = report.list_done(settings)
        # Nothing is known before the first step in which the node acts.
        write_on_node(node.node_id, _lay_out(report.sum_up(settings), left, done) or RUNNING)


@contextmanager
def tell_preparing() -> Iterator[None]:
    """On the nodes alone, while a kernel is compiled in a call of their model."""
    attached = find_attached()
    if attached is None:
        yield
        return
    for node in attached.stack.nodes:
        write_on_node(node.node_id, KERNELS)
    try:
        yield
    finally:
        report_start(attached)


def report_end(attached: Attached, run: Run) -> None:
    """Everything, once."""
    said: list[tuple[str, str]] = []
    for node in attached.stack.nodes:
        report, settings, name = run.report, node.settings, node.settings.node_name
        done, reasons = report.list_done(settings), report.list_left(settings)
        otherwise = attached.stack.explain_idle(settings) or run.explain_idle(settings)
        idle = report.explain_idle(settings, otherwise)
        left = [*reasons, *_list_remarks(attached, settings)]
        verdict = [f"Not reduced: {idle}"] if idle else report.sum_up(settings)
        write_on_node(node.node_id, _lay_out(verdict, left, done))
        if idle:
            left.append(NOTHING if reasons else f"{NOTHING}: {idle}")
        for line in done:
            logger.info("%s: %s.", name, line)
        for line in left:
            logger.warning("%s: %s.", name, line)
        said += [(name, line) for line in (*done, *left)]
    for listener in attached.listeners:
        listener(tuple(said))


def report_stop(attached: Attached) -> None:
    """On the nodes alone: what stood there is no longer true."""
    for node in attached.stack.nodes:
        write_on_node(node.node_id, STOPPED)


def report_lost() -> None:
    """In the console alone: another node put options of its own in place of the model's, and with
    them went our settings and the numbers of our nodes. ComfyUI's SDPose Keypoint Extractor does.
    """
    logger.warning(
        "Token Merge and Token Downsample: another node replaced the options of the model, and "
        "with them the settings of these nodes: %s.",
        NOTHING,
    )


def _list_remarks(attached: Attached, settings: Settings) -> tuple[str, ...]:
    return (*settings.remarks, *attached.architecture.list_remarks(settings))


def _lay_out(verdict: Sequence[str], left: Sequence[str], done: Sequence[str]) -> str:
    """The text on a node: what matters most, what was left out, what was done in full.

    The page's classic nodes do not grow with their text: a new one shows two lines, and the rest by
    scrolling.
    """
    return "\n".join([*verdict, *left, *done])


def find_node_id(node: type[io.ComfyNode]) -> str | None:
    """The id of a running node on the page, None in a script.

    The node must ask for ``Hidden.unique_id``.
    """
    return node.hidden.unique_id if node.hidden else None


def write_on_node(node_id: str | None, text: str, end: str = END) -> None:
    """Show ``text`` on the node, as ComfyUI's own GetImageSize does.

    Only the page that queued the prompt gets it: on another page, another node may have this id.
    Nothing happens without a ``node_id``, which only a server gives, without a server, or where no
    page queued the prompt. A page that shows the outside of the node's subgraph drops the text, and
    our script takes it off the node of another kind that has this id in another workflow.

    end: ``END`` or ``SETTLED``.
    """
    if node_id is None:
        return
    # Here and not above: a script has no use for ComfyUI's server.
    from server import PromptServer

    instance: Any = getattr(PromptServer, "instance", None)
    client = getattr(instance, "client_id", None)
    if client is not None:
        lines = [line for each in text.splitlines() for line in wrap(each, LETTERS) or [""]]
        instance.send_progress_text(LINE_BREAK.join(lines) + end, node_id, sid=client)
