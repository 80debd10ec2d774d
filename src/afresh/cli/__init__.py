"""The command line: `afresh COMMAND`.

Every command has `--help` with an example; bad input gets one sentence and a hint on standard error and exit code 2;
`--json` where a program may want to read along. Heavy imports happen inside the commands, so that `--help` is instant.
"""

import errno
import sys
from typing import NoReturn

import typer
from typer.exceptions import Abort, TyperException

from afresh.cli import (
    cluster,
    console,
    contest,
    control,
    diff,
    feeds,
    hosts,
    importing,
    kinds,
    lab,
    lab_kinds,
    lab_prefetch,
    lab_search,
    lab_serve,
    lab_urlcache,
    migrate,
    notify,
    pages,
    plan,
    play,
    queries,
    replay,
    requests,
    run,
    search,
    senders,
    serve,
    show,
    status,
    token,
    upkeep,
    watch,
)
from afresh.cli.terminal import flush, labelled, output_failed, plain, read_by_a_pipe
from afresh.errors import AfreshError

OUTPUT_ERRORS = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF})

app = typer.Typer(
    name="afresh",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
of_queries = typer.Typer(
    help="Database queries whose results are kept fresh.\n\n"
    'Example: afresh query add newest --database sqlite:shop.db --sql "SELECT max(id) FROM orders"',
    no_args_is_help=True,
    rich_markup_mode=None,
)
of_queries.command("add", short_help="Keep the results of a query.")(queries.add)
of_queries.command("list", short_help="Queries: results, what a run takes, how often they change.")(queries.listed)
of_queries.command("remove", short_help="Forget a query with its results.")(queries.remove)
of_queries.command("suggest", short_help="Queries that a PostgreSQL is asked often.")(queries.suggest)
app.command("init", short_help="Write a commented settings file.")(pages.init)
app.command("add", short_help="Keep pages fresh from now on.")(pages.add)
app.command("remove", short_help="Forget pages.")(control.remove)
app.command("pause", short_help="Stop crawling pages, a host or everything for now.")(control.pause)
app.command("resume", short_help="Undo pause.")(control.resume)
app.command("refresh", short_help="Crawl pages now, ahead of all others.")(control.refresh)
app.command("signal", short_help="Say that pages may have changed.")(control.signal)
app.command("requests", short_help="Learn from access logs which pages are requested.")(requests.requests)
app.command("run", short_help="Crawl until stopped.")(run.run)
app.command("watch", short_help="Watch a few pages, and be told what changed.")(watch.watch)
app.command("crawl", short_help="Discover a site and keep it fresh.")(run.crawl)
app.command("console", short_help="The collection in the browser; API, feeds, metrics.")(console.console)
app.command("serve", short_help="Answer readers from copies: a caching proxy.")(serve.serve)
app.command("status", short_help="How fresh the collection is.")(status.status)
app.command("show", short_help="All about one page: when it is due, and why.")(show.show)
app.command("search", short_help="Search the copies.")(search.search)
app.command("index", short_help="Build the full-text index, or bring it up to date.")(search.index)
app.command("check", short_help="Prove store and index whole; mend the index.")(search.check)
app.command("hosts", short_help="Hosts: pages, rate, rest, failures; most failures first.")(hosts.hosts)
app.command("senders", short_help="Who sends change hints, and what they are worth.")(senders.senders)
app.command("kinds", short_help="Kinds of pages: how many, how often they change.")(kinds.kinds)
app.add_typer(of_queries, name="query", short_help="Database queries whose results are kept.")
app.command("changes", short_help="What was found new, changed or gone, as JSON lines.")(feeds.changes)
app.command("diff", short_help="What changed on a page, word by word.")(diff.diff)
app.command("export", short_help="Write all copies as WARC, CDX or JSON lines.")(feeds.export)
app.command("import", short_help="Take in what another program has crawled: WARC, CDX.")(importing.import_)
app.command("backup", short_help="Copy the whole store, even while it is in use.")(upkeep.backup)
app.command("compact", short_help="Give back the space that the store does not use.")(upkeep.compact)
app.command("migrate", short_help="Carry a store over into PostgreSQL, or back.")(migrate.migrate)
app.command("plan", short_help="What a budget buys, and what a goal costs.")(plan.plan)
app.command("web", short_help="Serve a synthetic web on loopback.")(play.web)
app.command("demo", short_help="A minute of three schedules side by side.")(play.demo)

experiments = typer.Typer(
    help="Experiments: the published figures, all policies side by side, and replay of recorded histories.\n\n"
    "Example: afresh lab run fig4 --pages 100 --reps 20",
    no_args_is_help=True,
    rich_markup_mode=None,
)
experiments.command("list", short_help="The published figures.")(lab.list_experiments)
experiments.command("run", short_help="Reproduce a published figure.")(lab.run)
experiments.command("compare", short_help="All policies on a synthetic collection.")(replay.compare)
experiments.command("replay", short_help="All policies over a recorded history.")(replay.replay)
experiments.command("contest", short_help="Every peer over many histories, summed up.")(contest.contest)
experiments.command("urlcache", short_help="Misses of URL caches.")(lab_urlcache.urlcache)
experiments.command("prefetch", short_help="How well the next page of readers is foretold, on a log.")(
    lab_prefetch.prefetch
)
experiments.command("serve", short_help="Other caches' rules and ours, at equal fetches.")(lab_serve.serve)
experiments.command("search", short_help="How right searches stay over documents that change.")(lab_search.search)
experiments.command("report", short_help="One HTML page of all results.")(lab.report)
of_kinds = typer.Typer(
    help="The model that tells kinds of pages.\n\nExample: afresh lab kinds test pages.jsonl.xz",
    no_args_is_help=True,
    rich_markup_mode=None,
)
of_kinds.command("train", short_help="Train it on labelled pages.")(lab_kinds.train)
of_kinds.command("test", short_help="Score it on a labelled file.")(lab_kinds.score)
experiments.add_typer(of_kinds, name="kinds", short_help="The model that tells kinds of pages.")
app.add_typer(notify.commands, name="notify", short_help="Who is told of changes: try, list, send again.")
app.add_typer(cluster.commands, name="cluster", short_help="Many workers on one store in PostgreSQL.")
app.add_typer(token.commands, name="token", short_help="Tokens for what others send to a running crawl.")
app.add_typer(experiments, name="lab", short_help="Experiments, comparisons, replays.")


@app.callback(invoke_without_command=True)
def version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Keep copies of things that change elsewhere as fresh as a limited budget allows.

    Example: afresh add https://example.com/, then afresh run --budget 1/s, and in another terminal afresh status.

    Exit codes: 0 done, 1 a fault in afresh itself or standard output cannot be written, 2 bad input (one sentence and
    a hint say what).
    """
    if version:
        from afresh import __version__

        typer.echo(f"afresh {__version__}")
        raise typer.Exit


def _refuse(error: TyperException) -> NoReturn:
    """Report a wrong command line like all other bad input: one sentence and a hint."""
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip()
    if message.startswith("Usage:"):  # nothing was said: the help itself
        print(message)  # noqa: T201
        sys.exit(2)
    sentence, _, options = message.partition(" (Possible options: ")
    sentence = sentence.rstrip(".").replace("No such option:", "There is no option").replace("No such", "There is no")
    sentence, _, guess = sentence.partition(" Did you mean ")
    options = options or guess.rstrip("?")
    sentence = sentence.rstrip(".")
    near = f"Did you mean {options.rstrip(')')}? " if options else ""
    path = context.command_path if context is not None else "afresh"
    _say("afresh:", f"{plain(sentence)}.")
    # A word to leave out is written like an option.
    words = " Words to leave out come after --: afresh search -- tax -news." if path.endswith(" search") else ""
    _say("  hint:", f"{plain(near)}See {path} --help.{words}")
    sys.exit(2)


def _say(label: str, text: str) -> None:
    """A line on standard error; at a terminal, words stay whole at 80 columns."""
    line = f"{label} {text}"
    print(labelled(label, text, 8) if sys.stderr.isatty() else line, file=sys.stderr)  # noqa: T201


def main() -> None:
    """Run the command line; the entry point of `afresh` in the shell."""
    read_by_a_pipe()
    try:
        try:
            sys.exit(app(prog_name="afresh", standalone_mode=False))
        finally:
            flush()
    except TyperException as error:
        _refuse(error)
    except Abort:
        sys.exit(1)
    except AfreshError as error:
        _say("afresh:", plain(error.message))
        if error.hint:
            _say("  hint:", plain(error.hint))
        sys.exit(2)
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        output_failed(error)
