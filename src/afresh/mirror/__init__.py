"""Refresh rates learned from costs, without a model of how pages change.

`step` has the two exact steps over rates between bounds with a fixed sum, `plain` the same by bisection. `plays` says
when each arm is refreshed or probed, and makes gradient samples of what that showed. `learners` puts them together.
"""

from afresh.mirror.learners import AsyncMirrorSync, AsyncPsgdSync, Learner, MirrorSync
from afresh.mirror.plays import BRIDGE, PROBE, SYNC, Plays
from afresh.mirror.step import mirror_step, project

__all__ = [
    "BRIDGE",
    "PROBE",
    "SYNC",
    "AsyncMirrorSync",
    "AsyncPsgdSync",
    "Learner",
    "MirrorSync",
    "Plays",
    "mirror_step",
    "project",
]
