"""How tests by chance look for counterexamples."""

import os

from hypothesis import settings

# The same examples every time, however busy the machine is; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("reattach", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=3000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reattach"))
