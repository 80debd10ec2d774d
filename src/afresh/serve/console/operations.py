"""What the API offers, once: the table that requests are checked against, and the description that programs read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from afresh.serve.receive.bodies import Refused

ROOT = "/api/v1"
MAX_URL = 2_083
MAX_VALUES = 20  # of a parameter that may be repeated


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query, and what is taken for it."""

    name: str
    help: str
    kind: str = "string"  # or integer, number, boolean
    default: Any = None
    low: float | None = None
    high: float | None = None
    longest: int = MAX_URL
    choices: Sequence[str] = ()
    required: bool = False
    repeats: bool = False
    example: Any = None

    def read(self, text: str) -> Any:
        """A value from its text; Refused if it cannot be used."""
        match self.kind:
            case "integer" if text.lstrip("-").isdecimal() and text.isascii() and len(text) <= 19:
                return self._bounded(int(text))
            case "number":
                try:
                    number = float(text)
                except ValueError:
                    number = math.nan
                if math.isfinite(number) and "_" not in text:
                    return self._bounded(number)
            case "boolean" if text in ("true", "false"):
                return text == "true"
            case "string" if len(text) <= self.longest and (not self.choices or text in self.choices):
                return text
        raise self._refused()

    def _bounded(self, number: float) -> float:
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            raise self._refused()
        return number

    def _refused(self) -> Refused:
        wanted = (
            ", ".join(filter(None, self.choices)) if self.choices else f"a text of at most {self.longest} characters"
        )
        if self.kind == "boolean":
            wanted = "true or false"
        elif self.kind != "string":
            how = "d" if self.kind == "integer" else "g"
            low = "" if self.low is None else f" from {self.low:{how}}"
            high = "" if self.high is None else f" to {self.high:{how}}"
            wanted = f"{'a whole number' if self.kind == 'integer' else 'a number'}{low}{high}"
        return Refused(400, f"The parameter {self.name} cannot be used.", f"It takes {wanted}.")

    def describe(self) -> dict[str, Any]:
        """As OpenAPI has it."""
        schema: dict[str, Any] = {"type": self.kind}
        if self.kind == "string" and not self.choices:
            schema["maxLength"] = self.longest
        if self.choices:
            schema["enum"] = list(self.choices)
        schema |= {name: value for name, value in (("minimum", self.low), ("maximum", self.high)) if value is not None}
        if self.default is not None and not self.repeats:
            schema["default"] = self.default
        if self.repeats:
            schema = {"type": "array", "items": schema, "maxItems": MAX_VALUES}
        described = {"name": self.name, "in": "query", "required": self.required, "description": self.help}
        example = {} if self.example is None else {"example": self.example}
        return described | {"schema": schema} | example


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked or wished for."""

    method: str
    path: str
    name: str
    help: str
    parameters: tuple[Parameter, ...] = ()
    answers: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})  # the schema of what it answers
    media: tuple[str, ...] = ("application/json",)
    takes: Mapping[str, Any] | None = None  # the schema of the body
    scope: str = "read"
    status: int = 200
    may_miss: bool = False  # whether what is asked for may not be there
    may_conflict: bool = False  # whether it may be of another collection

    def read(self, request: Request) -> dict[str, Any]:
        """The parameters of a request, by name; Refused if any cannot be used."""
        known = {each.name: each for each in self.parameters}
        query = request.query_params
        for name in query:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise Refused(400, f"There is no parameter {name[:40]!r} here.", f"Known are: {listed}.")
        found: dict[str, Any] = {}
        for name, each in known.items():
            texts = query.getlist(name)
            if each.required and not any(texts):
                raise Refused(400, f"The parameter {name} is missing.", each.help)
            if len(texts) > (MAX_VALUES if each.repeats else 1):
                raise Refused(400, f"The parameter {name} comes too often.", "Give it once.")
            values = [each.read(text) for text in texts if text or each.kind == "string"]
            none = "" if each.kind == "string" and each.default is None else each.default
            found[name] = values if each.repeats else (values[0] if values else none)
        return found

    def describe(self) -> dict[str, Any]:
        """As OpenAPI has it."""
        content = {
            kind: {"schema": dict(self.answers) if "json" in kind else {"type": "string"}} for kind in self.media
        }
        responses: dict[str, Any] = {str(self.status): {"description": "What was asked for.", "content": content}}
        statuses = (
            ["400", "401", "403", "421", "429", "500", "503"]
            + (["404"] if self.may_miss else [])
            + (["409"] if self.may_conflict else [])
        )
        if self.takes is not None:
            statuses += ["408", "413", "415", "422"]
        responses |= {status: {"$ref": "#/components/responses/Problem"} for status in sorted(statuses)}
        described: dict[str, Any] = {"operationId": self.name, "summary": self.help, "responses": responses}
        described["security"] = [{"token": []}] if self.scope == "act" else [{"token": []}, {}]
        if self.parameters:
            described["parameters"] = [each.describe() for each in self.parameters]
        if self.takes is not None:
            described["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": dict(self.takes)}},
            }
        return described


def description(operations: Sequence[Operation], version: str) -> dict[str, Any]:
    """The whole API, as OpenAPI 3.1 has it."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(ROOT + each.path, {})[each.method.lower()] = each.describe()
    problem = {
        "type": "object",
        "required": ["type", "title", "status"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "afresh",
            "version": version,
            "description": "How fresh copies are, what changed, and what to do next. Times are seconds since 1970, "
            "rates are per second, sizes are bytes.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": problem},
            "responses": {
                "Problem": {
                    "description": "What is wrong, in one sentence, and a hint (RFC 9457).",
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
