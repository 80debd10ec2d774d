"""The lab: the published experiments, comparisons and replays, as data that the command line shows.

`experiments` is the table of them: what is drawn and what is measured. Worlds, policies and scores come from
`afresh.sim`. `run` carries an experiment out, on as many cores as there are.
"""

from afresh.lab.base import Experiment, RegretRow, Result, RoundRow, Row
from afresh.lab.experiments import EXPERIMENTS, experiment
from afresh.lab.run import run

__all__ = ["EXPERIMENTS", "Experiment", "RegretRow", "Result", "RoundRow", "Row", "experiment", "run"]
