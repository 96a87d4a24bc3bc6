"""Runs a program that ends when the process that asked for it ends, however that happens (``kill -9`` included).

Started as a script of its own, so that nothing has to happen between fork and exec of a process that has threads::

    python -I -S tether.py exec  PARENT SIGNAL PROGRAM…     Linux: the kernel sends SIGNAL when PARENT is gone; this process becomes PROGRAM
    python -I -S tether.py watch PARENT SIGNAL PROGRAM…     elsewhere: this process stays, and sends SIGNAL when its standard input closes
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_KILL_AFTER: Final = 15.0


def become(parent: int, number: int, program: Sequence[str]) -> NoReturn:
    """Let the kernel watch the parent, then turn into the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have gone before the kernel was told to watch it: then no signal ever comes.
    if os.getppid() != parent:
        raise SystemExit(1)
    os.execv(program[0], list(program))


def watch(number: int, program: Sequence[str]) -> NoReturn:
    """Run the program beside this process until it ends, or until the other end of standard input is gone."""
    child = subprocess.Popen(program, stdin=subprocess.DEVNULL, close_fds=False)

    def until_alone() -> None:
        while os.read(0, 512):
            pass
        child.send_signal(number)
        try:
            child.wait(_KILL_AFTER)
        except subprocess.TimeoutExpired:
            child.kill()

    for caught in (signal.SIGTERM, signal.SIGINT):
        signal.signal(caught, lambda received, _: child.send_signal(received))
    threading.Thread(target=until_alone, daemon=True).start()
    code = child.wait()
    raise SystemExit(code if code >= 0 else 128 - code)


def main(arguments: Sequence[str]) -> NoReturn:
    """Read the arguments and never return."""
    mode, parent, number, *program = arguments
    try:
        if mode == "exec":
            become(int(parent), int(number), program)
        watch(int(number), program)
    except OSError as e:
        print(f"{program[0]}: {e.strerror}", file=sys.stderr)
        raise SystemExit(127) from None


if __name__ == "__main__":
    main(sys.argv[1:])
