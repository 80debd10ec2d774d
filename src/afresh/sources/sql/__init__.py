"""Results of database queries: which there are, how they are run, and how their rows are kept.

`definitions` names databases and queries and their keys, `statement` reads a query's text, `values` has the one form of
parameters and rows, `drivers` reach databases, `pool` runs queries in threads, and `source` is the source itself.
`cache` is what applications use in place of running a query, `shared` what their processes share.
"""

from afresh.sources.sql.cache import QueryCache
from afresh.sources.sql.definitions import Database, Definitions, Query
from afresh.sources.sql.rows import Rows
from afresh.sources.sql.source import Sql

__all__ = ["Database", "Definitions", "Query", "QueryCache", "Rows", "Sql"]
