"""Settings for all tests."""

import os

from hypothesis import settings

# In CI the draws are the same every time; elsewhere they go on searching.
# The first example of a property may compile a function, which takes as long as it takes.
settings.register_profile("afresh", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("afresh")
