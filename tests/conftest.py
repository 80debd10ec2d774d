"""Settings for all tests."""

from hypothesis import settings

# The first example of a property may compile a function, which takes as long as it takes.
settings.register_profile("afresh", deadline=None)
settings.load_profile("afresh")
