"""afresh keeps copies of things that change elsewhere as fresh as a limited budget allows."""

__version__ = "0.1.0"
