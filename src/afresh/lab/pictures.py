"""matplotlib, if it is there: loaded when the first picture is asked for."""

from typing import Any

from afresh.errors import ConfigError


def pyplot() -> Any:
    """What pictures are drawn with; ConfigError where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise ConfigError(
            "Pictures need matplotlib.",
            hint="Install it: pip install matplotlib (with afresh: pip install 'afresh[plot]', or '.[plot]' in a "
            "source checkout).",
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as drawing

    return drawing
