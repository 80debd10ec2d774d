"""Full text over the copies: the index, searches, and how good their answers are while copies grow old.

`FullText` is the index in SQLite, written with the copies; `Search` answers beside a runner; `queries` understands what
people write; `measures` says how alike two rankings are.
"""

from afresh.index.fulltext import Found, FullText, Weights
from afresh.index.queries import Query, parse
from afresh.index.search import Result, Results, Search, as_facts, results_of

__all__ = ["Found", "FullText", "Query", "Result", "Results", "Search", "Weights", "as_facts", "parse", "results_of"]
