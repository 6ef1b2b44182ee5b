"""Text on a node of ComfyUI's page."""

from __future__ import annotations


def write_on_node(node_id: str | None, text: str) -> None:
    """Show ``text`` on the node, as ComfyUI's own GetImageSize does.

    Nothing happens without a ``node_id``, which only a server gives, or without a server.
    """
    if node_id is None:
        return
    # Here and not above: a script has no use for ComfyUI's server.
    from server import PromptServer

    instance = getattr(PromptServer, "instance", None)
    if instance is not None:
        # The newer look of the nodes reads Markdown, where a line ends with two spaces.
        instance.send_progress_text(text.replace("\n", "  \n"), node_id)
