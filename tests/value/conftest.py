"""The first call of a compiled function takes seconds if nothing is cached: no deadline for single examples."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
