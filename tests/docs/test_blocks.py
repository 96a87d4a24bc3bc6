"""The README's commands are run as a reader runs them, in two terminals and an empty folder, and show what it says."""

import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ..support.processes import free_port
from ..support.waiting import wait_until_sync
from . import readme
from .expected import compare
from .terminal import Shell, Terminal

INSTALL = "python3 -m venv .venv && .venv/bin/pip install . && "
READY = "reattach tail RUN\n"
NEEDED = ("bash", "curl", "pgrep")

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"needs {', '.join(NEEDED)}"),
]


class Reader:
    """Somebody who follows the README: one terminal for ``reattach dev``, one for everything else."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._stack = ExitStack()
        self.service: Terminal | None = None
        self.shell = self._stack.enter_context(Shell(cwd=folder, env=self._environment()))
        self.places = {":8080": f":{self.port}", "/home/ada/reattach": str(folder), "laptop-": f"{socket.gethostname()}-"}

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("REATTACH_", "OPENAI_", "PYTEST_"))}
        # The command that is tested is this environment's; what is waited for is made short, what is shown stays the same.
        given = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        return {**kept, **given, "REATTACH_PORT": str(self.port), "REATTACH_LEASE": "3", "REATTACH_DEMO_SPEED": "60"}

    def follow(self, block: readme.Block) -> None:
        """Run a block and compare what it shows."""
        command = block.text.replace(INSTALL, "").replace(".venv/bin/reattach", "reattach").replace(":8080", f":{self.port}")
        shown = self.start(command) if command.startswith("reattach dev") else self.shell.run(command)
        if block.shows is not None:
            compare(block.shows, shown, self.places)

    def start(self, command: str) -> str:
        """Start ``reattach dev`` in the first terminal, after Ctrl-C where it still runs."""
        self.stop()
        self.service = self._stack.enter_context(Terminal(shlex.split(command), cwd=self.folder, env=self._environment()))
        return self.service.wait_for(READY)

    def stop(self) -> None:
        """Press Ctrl-C."""
        if self.service is not None and self.service.process.poll() is None:
            self.service.process.send_signal(signal.SIGINT)
            assert self.service.process.wait(20) == 0, self.service.output()
            assert "\n  stopped " in self.service.output()

    def close(self) -> None:
        """End everything, however far it came."""
        self._stack.close()


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Somebody in an empty folder, who leaves no process behind."""
    # Not pytest's own folder: the path of a socket in it may be too long.
    folder = Path(tempfile.mkdtemp(prefix="readme-", dir="/tmp"))
    someone = Reader(folder)
    try:
        yield someone
    finally:
        someone.close()
        wait_until_sync(lambda: not living_in(folder), f"the processes in {folder} to end")
        shutil.rmtree(folder)


def living_in(folder: Path) -> list[str]:
    """The processes whose folder this is; none where that cannot be known."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_everything_the_readme_shows_happens(reader: Reader) -> None:
    """Each block works, after those before it, and its output is the README's but for ids and times."""
    (reader.folder / "shop.py").write_text("\n\n".join(block.text for block in readme.in_language("python")), "utf-8")
    blocks = readme.in_language("sh")
    assert len(blocks) > 8
    for block in blocks:
        if "redis-cli" in block.text and shutil.which("redis-cli") is None:
            continue
        try:
            reader.follow(block)
        except AssertionError as e:
            raise AssertionError(f"README.md, line {block.line}: {e}") from None
    reader.stop()
    left = [path.name for path in reader.folder.iterdir() if path.name not in (".reattach", "shop.py", "__pycache__")]
    assert left == [], "the README leaves files behind"
