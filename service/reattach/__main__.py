"""``python -m reattach``: the same as ``reattach``."""

from .cli.main import main

main(prog_name="reattach")
