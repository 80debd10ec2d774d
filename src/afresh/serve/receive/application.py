"""The application: every room that was opened, and plain answers for all else."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from afresh.serve.receive.bodies import Refused, refusal

_log = logging.getLogger("afresh.http")
Handler = Callable[[Request], Awaitable[Response]]
Says = Callable[[Request, Refused], Response]  # how somebody is told that something was refused


def application(
    routes: Iterable[tuple[str, str, Handler]],
    tally: Counter[str] | None = None,
    says: Says = lambda request, refused: refusal(refused),
) -> Starlette:
    """An application of (method, path, handler); a handler may raise `Refused`. `tally` counts what becomes of them."""
    counts: Counter[str] = Counter() if tally is None else tally
    made = [Route(path, _counted(handler, counts), methods=[method]) for method, path, handler in routes]

    async def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, Refused):
            return says(request, error)
        _log.error("An answer failed: %s %s", request.method, request.url.path, exc_info=error)
        return says(request, Refused(500, "Something went wrong here.", "The log says more."))

    async def not_here(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        said = {404: "There is nothing here.", 405: "That cannot be done here."}
        headers = getattr(error, "headers", None) or {}
        return says(request, Refused(status, said.get(status, "That cannot be read."), **headers))

    handlers = {Refused: refused, HTTPException: not_here, Exception: refused}
    return Starlette(routes=made, exception_handlers=handlers)


def _counted(handler: Handler, tally: Counter[str]) -> Handler:
    async def handled(request: Request) -> Response:
        try:
            response = await handler(request)
        except Refused:
            tally["refused"] += 1
            raise
        tally["accepted"] += 1
        return response

    return handled
