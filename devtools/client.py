"""Runs graphs on a server through its HTTP API and reads its progress from the websocket."""

from __future__ import annotations

import io
import json
import struct
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import requests
import websocket
from PIL import Image

from .server import Server

Prompt = dict[str, dict[str, Any]]  # the API's format: node id -> class_type and inputs

TEXT = 3
"""The server gives this number to a binary message that holds a text for a node."""


class RunError(RuntimeError):
    """The server refused a graph or a node of it failed; the message is the server's."""


@dataclass
class GraphRun:
    """What one run of a graph gave.

    images: in the order of the nodes that saved them. Videos are left out.
    texts: that nodes showed, in the order of the nodes.
    written: the last text that was written on each node meanwhile, in one line, by the node's id.
        The server sends these to the client that queued the graph.
    seconds: that each node ran, by its id. A node whose result was kept did not run.
    """

    images: list[Image.Image] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Client:
    """A connection to one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._name = uuid.uuid4().hex
        address = f"ws://127.0.0.1:{server.port}/ws?clientId={self._name}"
        self._socket = websocket.create_connection(address, timeout=30)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def object_info(self) -> dict[str, Any]:
        """The schema of every node the server knows."""
        info: dict[str, Any] = requests.get(f"{self._server.url}/object_info", timeout=60).json()
        return info

    def submit(self, prompt: Prompt) -> str:
        """Queue a graph and return its id; a RunError where the server refuses it."""
        # By Python's own JSON, which can say NaN and infinity, as other scripts do.
        body = json.dumps({"prompt": prompt, "client_id": self._name})
        reply = requests.post(f"{self._server.url}/prompt", data=body, timeout=60)
        if reply.status_code != requests.codes.ok:
            raise RunError(_refusal(reply.json()))
        identity: str = reply.json()["prompt_id"]
        return identity

    def run(self, prompt: Prompt, on_step: Callable[[], None] = lambda: None) -> GraphRun:
        """Run a graph to its end; ``on_step`` is called after every sampling step."""
        return self.finish(self.submit(prompt), on_step)

    def finish(self, identity: str, on_step: Callable[[], None] = lambda: None) -> GraphRun:
        """Wait for a graph that was queued; other events are dropped until then."""
        result = GraphRun()
        running, began = None, 0.0  # the node, and since when
        while True:
            kind, data = self._next_event()
            if kind == "text":
                result.written[data["node"]] = " ".join(data["text"].split())
            if data.get("prompt_id") != identity:
                continue
            if kind == "progress":
                on_step()
            elif kind == "execution_error":
                message = data["exception_message"].strip()
                raise RunError(f"{data['node_type']} (node {data['node_id']}): {message}")
            elif kind == "execution_interrupted":
                raise RunError(f"interrupted at {data['node_type']} (node {data['node_id']})")
            elif kind == "executing":
                now = time.perf_counter()
                if running is not None:
                    result.seconds[running] = now - began
                running, began = data["node"], now
                if running is not None:
                    continue
                outputs = self._outputs(identity)  # last of all, the history is there
                result.images = self._images(outputs)
                result.texts = [text for each in outputs for text in each.get("text", [])]
                return result

    def interrupt(self) -> None:
        """Stop the graph that runs."""
        requests.post(f"{self._server.url}/interrupt", json={}, timeout=60).raise_for_status()

    def free(self) -> None:
        """Unload all models and forget all results, once the queue is empty."""
        wishes = {"unload_models": True, "free_memory": True}
        requests.post(f"{self._server.url}/free", json=wishes, timeout=60).raise_for_status()

    def _next_event(self) -> tuple[str, dict[str, Any]]:
        while True:
            try:
                message = self._socket.recv()
            except websocket.WebSocketTimeoutException:
                # A long step says nothing meanwhile; a server that ended never will.
                self._server.check()
                continue
            except (websocket.WebSocketException, OSError) as error:
                time.sleep(1)  # the exit code comes a moment after the connection breaks
                self._server.check()
                raise RunError(f"the connection to ComfyUI broke: {error}") from error
            if message == "":  # how the library reports that the server closed the connection
                time.sleep(1)
                self._server.check()
                raise RunError("ComfyUI closed the connection")
            if isinstance(message, str):
                event = json.loads(message)
                return event["type"], event["data"]
            kind, length = struct.unpack_from(">II", message)
            if kind == TEXT:  # the other ones are preview pictures
                node, text = message[8 : 8 + length], message[8 + length :]
                return "text", {"node": node.decode(), "text": text.decode()}

    def _outputs(self, identity: str) -> list[dict[str, Any]]:
        """What each node has shown, in the order of the nodes."""
        history = requests.get(f"{self._server.url}/history/{identity}", timeout=60).json()
        outputs = history[identity]["outputs"]
        return [outputs[node] for node in sorted(outputs, key=int)]

    def _images(self, outputs: list[dict[str, Any]]) -> list[Image.Image]:
        return [
            self._image(image)
            for output in outputs
            if "animated" not in output
            for image in output.get("images", [])
        ]

    def _image(self, place: dict[str, str]) -> Image.Image:
        reply = requests.get(f"{self._server.url}/view", params=place, timeout=60)
        reply.raise_for_status()
        return Image.open(io.BytesIO(reply.content)).convert("RGB")


def _refusal(reply: dict[str, Any]) -> str:
    """The messages of a refused graph: one line for each input that is wrong."""
    lines = [
        f"{node['class_type']} (node {identity}): {error['message']}: {error['details']}"
        for identity, node in reply.get("node_errors", {}).items()
        for error in node["errors"]
    ]
    return "\n".join(lines) or f"{reply['error']['message']}: {reply['error']['details']}"
