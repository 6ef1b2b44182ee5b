"""Text on a node of ComfyUI's page."""

from __future__ import annotations

from textwrap import wrap

from comfy_api.latest import io

LINE_BREAK = "  \n"
"""The page shows the text as HTML on its classic nodes and as Markdown on its newer ones, where a
single line feed is a space. A line break in both is two spaces and a line feed."""

LETTERS = 36
"""Of a line on a classic node that was just placed: the page breaks longer lines within words."""


def find_node_id(node: type[io.ComfyNode]) -> str | None:
    """Of a running node on the page, None in a script. The node asks for ``Hidden.unique_id``."""
    return node.hidden.unique_id if node.hidden else None


def write_on_node(node_id: str | None, text: str) -> None:
    """Show ``text`` on the node, as ComfyUI's own GetImageSize does.

    Nothing happens without a ``node_id``, which only a server gives, or without a server. A page
    that shows another workflow or the outside of the node's subgraph drops the text.
    """
    if node_id is None:
        return
    # Here and not above: a script has no use for ComfyUI's server.
    from server import PromptServer

    instance = getattr(PromptServer, "instance", None)
    if instance is not None:
        lines = [line for each in text.splitlines() for line in wrap(each, LETTERS) or [""]]
        instance.send_progress_text(LINE_BREAK.join(lines), node_id)
