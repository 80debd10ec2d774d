"""Who comes next: where readers go from the page that they are at.

Five models, each a probability of every page: transitions of the first order, and of the second backed off to the
first (`counts`); the place of links on the page; a Bayesian network of what readers are about (`user`, `user_model`);
and nothing known. `mixing` weighs them by how well each has foretold, site by site. `readers` is the way in: names,
sessions, and a bound on memory.
"""

from afresh.estimate.paths.readers import Paths
from afresh.estimate.paths.user_model import UserModel

__all__ = ["Paths", "UserModel"]
