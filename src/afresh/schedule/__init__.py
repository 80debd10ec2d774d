"""Which page next: schedulers that spend a budget at a constant rate where it gains most.

A page is added with what is believed of it, and gets a slot. From then on it ages; a signal makes it look older. At
every tick of the budget (`pace`) the most urgent page among the hosts that are ready is handed out and leased; when its
crawl is finished, its age starts again and its host rests. `plain` does this by looking at every page, and is the
specification of the faster way, `wheel`, for any number of pages. How urgent a page is, is a rule: the crawl value
(`greedy`), or what others do (`peers`).
"""

from afresh.schedule.base import CostsLearned, Explanation, KnowsPrices, LearnedRate, Pick, Schedules, SeesCosts
from afresh.schedule.greedy import Greedy
from afresh.schedule.pace import Pace
from afresh.schedule.peers import NutchAdaptive, Uniform
from afresh.schedule.plain import Plain, Rule
from afresh.schedule.priced import DEFAULT_SWEEP
from afresh.schedule.shards import share_budget
from afresh.schedule.wheel.scheduler import Scheduler

__all__ = [
    "DEFAULT_SWEEP",
    "CostsLearned",
    "Explanation",
    "Greedy",
    "KnowsPrices",
    "LearnedRate",
    "NutchAdaptive",
    "Pace",
    "Pick",
    "Plain",
    "Rule",
    "Scheduler",
    "Schedules",
    "SeesCosts",
    "Uniform",
    "share_budget",
]
