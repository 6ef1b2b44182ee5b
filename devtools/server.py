"""ComfyUI's server as a process: started on a base folder of ours, watched, and stopped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from .comfyui import ROOT
from .progress import Progress

DEMO_MODEL = Path(__file__).absolute().parent / "demo_model"
START_SECONDS = 180

# torch's idle threads would spin. Where other programs use the same cores, that takes the time
# from the threads that have work, and single steps take several times as long.
WAIT_POLICY = "PASSIVE"


class ServerError(RuntimeError):
    """The server did not start or ended by itself; the message ends with its last log lines."""


class Server:
    """A running ComfyUI whose models, nodes, output and settings all lie in ``base``."""

    def __init__(self, base: Path, options: Sequence[str] = (), port: int | None = None) -> None:
        self.base = base
        self.log = base / "server.log"
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        _link_packs(base)
        with Progress("Looking for a GPU"):
            command = [sys.executable, "main.py", *_arguments(base, self.port), *options]
        with open(self.log, "w", encoding="utf-8") as log:
            # In a session of its own: Ctrl-C is for us, who then stop the server in good order.
            self._process = subprocess.Popen(
                command,
                cwd=os.environ["COMFYUI_PATH"],
                env={**os.environ, "OMP_WAIT_POLICY": WAIT_POLICY},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            with Progress("Starting ComfyUI"):
                self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            try:
                requests.get(f"{self.url}/system_stats", timeout=5).raise_for_status()
            except requests.RequestException:
                time.sleep(0.2)
            else:
                return
        raise ServerError(f"ComfyUI did not answer within {START_SECONDS} s\n{self.last_lines()}")

    def check(self) -> None:
        """Raise a ServerError where the process has ended."""
        code = self._process.poll()
        if code is not None:
            raise ServerError(f"ComfyUI ended with exit code {code}\n{self.last_lines()}")

    @property
    def pid(self) -> int:
        """Of ComfyUI's process."""
        return self._process.pid

    def last_lines(self, count: int = 25) -> str:
        """The end of the server's log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-count:])

    def stop(self) -> None:
        """End the process, by force where it does not go by itself."""
        with Progress("Stopping ComfyUI"):
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextmanager
def running(base: Path, options: Sequence[str] = (), port: int | None = None) -> Iterator[Server]:
    """A server for the length of a ``with`` block."""
    server = Server(base, options, port)
    try:
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _arguments(base: Path, port: int) -> list[str]:
    import torch  # only now, as it takes seconds, in which the caller says what goes on

    arguments = [
        *("--base-directory", str(base), "--port", str(port)),
        # By default the database lies in ComfyUI's own folder.
        *("--database-url", "sqlite:///:memory:"),
        *("--disable-auto-launch", "--disable-api-nodes"),
    ]
    return arguments if torch.accelerator.is_available() else [*arguments, "--cpu"]


def _link_packs(base: Path) -> None:
    link(base / "custom_nodes" / "token-merge", ROOT)
    link(base / "custom_nodes" / "token-merge-demo-model", DEMO_MODEL)


def link(place: Path, target: Path) -> None:
    """Make ``place`` a link to ``target``, replacing an earlier link."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink():
        place.unlink()
    place.symlink_to(target, target_is_directory=target.is_dir())
