"""Everything breaks at once, repeatably: ``python -m tests.chaos --seed 7``."""
