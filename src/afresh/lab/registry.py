"""All experiments by name."""

from afresh.errors import ConfigError
from afresh.lab import fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9, fig10, fig11, fig12, fig13, fig14
from afresh.lab.base import Experiment
from afresh.lab.hearing import DELAY, SOURCES, WEIGHTS
from afresh.lab.learning import LEARN
from afresh.lab.signals import ERRORS

_MODULES = (fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9, fig10, fig11, fig12, fig13, fig14)
EXPERIMENTS: dict[str, Experiment] = {
    each.name: each for each in (*(module.FIGURE for module in _MODULES), ERRORS, LEARN, SOURCES, WEIGHTS, DELAY)
}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}.", hint=f"Choose one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
