"""The application: every room that was opened, and plain answers for all else."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from afresh.serve.receive.bodies import Refused, answer, refusal

Handler = Callable[[Request], Awaitable[Response]]


def application(routes: Iterable[tuple[str, str, Handler]], tally: Counter[str] | None = None) -> Starlette:
    """An application of (method, path, handler); a handler may raise `Refused`. `tally` counts what becomes of them."""
    counts: Counter[str] = Counter() if tally is None else tally
    made = [Route(path, _counted(handler, counts), methods=[method]) for method, path, handler in routes]
    return Starlette(routes=made, exception_handlers={Refused: _refused, HTTPException: _not_here})


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


async def _refused(request: Request, error: Exception) -> Response:
    return refusal(error) if isinstance(error, Refused) else answer(500, {"error": "Something went wrong here."})


async def _not_here(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = {404: "There is nothing here.", 405: "That cannot be done here."}
    return answer(status, {"error": said.get(status, "That cannot be read.")})
