"""A result as an application gets it: the rows, how old they are, and how likely a run would give the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from afresh.sources.sql.values import Row, from_json


@dataclass(frozen=True, slots=True)
class Rows(Sequence[Row]):
    """The rows of one result. They are shared by all who ask: nobody changes them.

    >>> rows = Rows(b'{"columns":[{"name":"n","type":"int4"}],"rows":[[1],[2]]}', age=3.0, fresh=0.9)
    >>> len(rows), rows[0], rows.names, rows.dicts()
    (2, (1,), ('n',), [{'n': 1}, {'n': 2}])
    """

    body: bytes = field(repr=False)  # JSON: {"columns": [{"name", "type", "as"}], "rows": [[…]]}
    age: float = 0.0  # seconds since the database gave them, or said that they are still the same
    fresh: float = 1.0  # how likely the database would give the same now
    kept: bool = False  # whether they come from the store; False: the query was run for this very request
    columns: tuple[tuple[str, str], ...] = field(init=False)  # name and type of each
    rows: tuple[Row, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        columns, rows = from_json(self.body)
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "rows", tuple(rows))

    def at(self, age: float, fresh: float, *, kept: bool = True) -> "Rows":
        """The same rows at another moment."""
        other = object.__new__(Rows)
        said = {"body": self.body, "age": age, "fresh": fresh, "kept": kept, "columns": self.columns, "rows": self.rows}
        for name, value in said.items():
            object.__setattr__(other, name, value)
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    def dicts(self) -> list[dict[str, Any]]:
        """Each row by the names of its columns."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def json(self) -> str:
        """The result as JSON, as it is kept."""
        return self.body.decode("utf-8", "replace")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.rows[index]
