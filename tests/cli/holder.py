"""Processes that tests kill: ``python -m tests.cli.holder child MODE`` and ``… holder store FOLDER`` hold something and wait."""

import asyncio
import signal
import sys

from reattach.cli.children import Child
from reattach.cli.embedded import Embedded
from reattach.cli.folder import DataFolder

PROGRAM = "import os, time; print('child', os.getpid(), flush=True); time.sleep(600)"


async def main(what: str, argument: str) -> None:
    """Hold it until killed."""
    if what == "child":
        await Child.spawn([sys.executable, "-c", PROGRAM], orphaned=signal.SIGTERM, mode=argument)
    else:
        server = Embedded(DataFolder(argument), command="the holder", report=lambda text: print(text, flush=True))
        await server.start()
        print("serves", server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
