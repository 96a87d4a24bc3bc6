"""What Reattach costs, as ratios to the least that the same machine can do in the same minute: ``python -m tests.bench``."""
