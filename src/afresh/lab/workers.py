"""Processes that work in parallel, and end with the one that started them."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

Submit = Callable[..., "Future[Any]"]


@contextmanager
def workers(count: int) -> Iterator[Submit]:
    """What hands work to fresh processes: threads of this one must not be copied. Whatever ends the work ends them."""
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    before = {each.pid for each in multiprocessing.active_children()}

    def submit(function: Callable[..., Any], *given: Any) -> "Future[Any]":
        # Processes that are started here inherit this: Ctrl-C is for the parent alone, who then ends them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(function, *given)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    try:
        yield submit
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for each in multiprocessing.active_children():
            if each.pid not in before:
                each.terminate()
        raise
    pool.shutdown()
