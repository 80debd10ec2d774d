"""`afresh search`, `afresh index` and `afresh check`: full text over the copies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.options import ConfigFile, Json, StoreFile
from afresh.cli.terminal import WIDTH, as_json, console, errors, labelled, plain, working
from afresh.config import Config
from afresh.errors import StoreLocked
from afresh.units import show_count, show_duration, show_size

if TYPE_CHECKING:
    from afresh.index import FullText, Result, Weights
    from afresh.store import LastingStore, Sqlite


def index_for(config: Config) -> "FullText":
    """The index that the settings describe."""
    from afresh.index import FullText
    from afresh.index.engines import engine_named

    said = config.index
    return FullText(
        tokenizer=said.tokenizer,
        weights=weights_for(config),
        max_text=said.max_text,
        engine=engine_named(said.engine),
    )


def weights_for(config: Config) -> "Weights":
    """What counts in the ranking, by the settings."""
    from afresh.index import Weights

    return Weights(config.index.title_weight, config.index.heading_weight, config.index.authority)


def search(
    words: Annotated[list[str], typer.Argument(help='Words, "a phrase", begin*, a OR b, -without, site:example.com.')],
    limit: Annotated[int, typer.Option(help="How many results at most.", min=1, max=1000)] = 10,
    host: Annotated[str, typer.Option(help="Only pages of this host, or of a domain and all below it.")] = "",
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Search the copies: all words by default. Each result says how old its copy is, and how likely it is still fresh.

    The store needs an index: afresh index. What is searched for counts as requests of the pages that it finds.

    Example: afresh search ferry "time table" --host example.com
    """
    from afresh.cli.opening import file_of, settings
    from afresh.cli.upkeep import require_file
    from afresh.index import Search, as_facts

    read = settings(config, store)
    path = file_of(read, "Search needs")
    require_file(path)
    # What the shell took the quotation marks from is a phrase.
    text = " ".join(
        f'"{word}"' if " " in word.strip() and '"' not in word and len(words) > 1 else word for word in words
    )
    with Search(path, weights=weights_for(read)) as engine:
        found = engine.search(text, limit=limit, host=host)
    if json:
        typer.echo(as_json(as_facts(found)))
        return
    for nth, each in enumerate(found.results, start=1):
        _print(nth, each)
    if not found.results:
        console.print(f"Nothing is found for {plain(found.query)}.")
    if found.notice:
        console.print(labelled("Note:", f"{found.notice}.", 6))


def _print(nth: int, each: "Result") -> None:
    console.print(plain(f"{nth:2}. {each.title or each.url}", WIDTH))
    console.print(f"    {plain(each.url)}")
    if each.snippet:
        console.print(labelled("", plain(each.snippet), 4))
    console.print(f"    {show_duration(each.age)} old, fresh with {100 * each.fresh:.0f} %")


def index(
    drop: Annotated[bool, typer.Option("--drop", help="Forget the index.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Build it anew, even if there is one.")] = False,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Build the full-text index of a store from its copies, or bring it up to date.

    With [index] enabled = true in the settings, afresh run keeps it so. A kill loses nothing: start it again.

    Example: afresh index
    """
    from afresh.cli.opening import in_file, open_store, settings
    from afresh.index import check, schema
    from afresh.store.faults import transaction

    read = settings(config, store)
    with open_store(read, create=False) as opened:
        kept = in_file(opened, "An index needs")
        _require_alone(kept, "The index is built by the runner")
        if drop:
            with kept.writing() as connection, transaction(connection):
                schema.drop(connection)
            typer.echo(as_json({"dropped": True}) if json else "The index is gone; the copies are as they were.")
            return
        built = index_for(read)
        with _bar("Indexing") as told:
            count = check.rebuild(kept, built, told, anew=again)
        facts = facts_of(kept, built) | {"written": count}
    if json:
        typer.echo(as_json(facts))
        return
    console.print(f"{show_count(count, 'copy', 'copies')} indexed; {show_count(facts['pages'], 'page')} in the index.")
    texts, bodies = show_size(facts["text_bytes"]), show_size(facts["words_bytes"])
    console.print(f"It takes {bodies} for words and {texts} for texts, compressed.")


def facts_of(kept: "Sqlite", built: "FullText") -> dict[str, int]:
    """How much an index holds and takes."""
    from afresh.index.schema import number_in

    reader = kept.reader()
    try:
        pages, words = built.counts(reader)
        texts = number_in(reader, "SELECT coalesce(sum(length(body) + length(targets)), 0) FROM search_docs")
        places = built.engine.size(reader)
        due = number_in(reader, "SELECT count(*) FROM search_due")
    finally:
        reader.close()
    return {"pages": pages, "words": words, "words_bytes": places, "text_bytes": texts, "due": due}


def _require_alone(kept: "LastingStore", what: str) -> None:
    try:
        kept.claim(brief=True)
    except StoreLocked as error:
        raise StoreLocked(
            f"{what}, and one is running on {kept.path}.",
            hint="With [index] enabled = true it keeps the index; or stop it first.",
        ) from error


def check(
    mend: Annotated[bool, typer.Option(help="Build a damaged index anew.")] = True,
    config: ConfigFile = None,
    store: StoreFile = None,
    json: Json = False,
) -> None:
    """Prove a store whole: its structure, every copy, and that the index agrees with the copies, word by word.

    A damaged index is built anew from the copies. Exit code 2 if something else is damaged.

    Example: afresh check
    """
    from afresh.cli.opening import open_store, settings
    from afresh.index import check as checks
    from afresh.store import Sqlite

    read = settings(config, store)
    with open_store(read, create=False) as kept:
        _require_alone(kept, "A store is checked while nobody runs on it")
        with working("Reading the store"):
            wrong = list(kept.problems())
        in_a_file = kept if isinstance(kept, Sqlite) else None
        built, mended, disagree = None if in_a_file is None else _index_of(in_a_file, read), False, []
        if in_a_file is not None and built is not None:
            with _bar("Checking") as told:
                disagree = _disagreements(in_a_file, built, told)
            if disagree and mend and not wrong:
                with _bar("Indexing") as told:
                    checks.rebuild(in_a_file, built, told)
                mended = not _disagreements(in_a_file, built)
        facts = {
            "copies": kept.totals().copies,
            "problems": wrong,
            "index": None if in_a_file is None or built is None else facts_of(in_a_file, built),
            "index_problems": disagree,
            "mended": mended,
        }
    if json:
        typer.echo(as_json(facts))
    else:
        _tell(facts, wrong, disagree, mended=mended, indexed=built is not None)
    if wrong or (disagree and not mended):
        raise typer.Exit(2)


def _disagreements(kept: "Sqlite", built: "FullText", told: Callable[[int, int], object] = max) -> list[str]:
    from afresh.index import check as checks

    inside = checks.sound_inside(kept, built)
    return [*([inside] if inside else []), *checks.problems(kept, built, told)]


def _index_of(kept: "Sqlite", config: Config) -> "FullText | None":
    """The index that a store has, whatever the settings say of its tokenizer; None: it has none."""
    from dataclasses import replace

    import apsw

    from afresh.index import schema
    from afresh.index.engines import NAMES

    reader = kept.reader()
    try:
        if not schema.is_made(reader):
            return None
        tokenizer, engine = str(schema.state(reader, "tokenizer")), schema.engine_of(reader)
    except apsw.SQLError:
        tokenizer = engine = ""
    finally:
        reader.close()
    known = tokenizer if tokenizer in schema.TOKENIZERS else config.index.tokenizer
    named = engine if engine in NAMES else config.index.engine
    return index_for(replace(config, index=replace(config.index, tokenizer=known, engine=named)))


def _tell(facts: dict[str, Any], wrong: list[str], disagree: list[str], *, mended: bool, indexed: bool) -> None:
    copies = show_count(int(str(facts["copies"])), "copy", "copies")
    console.print(f"{copies}: {'all whole' if not wrong else show_count(len(wrong), 'problem')}.")
    for each in wrong[:20]:
        console.print(labelled("", plain(each), 2))
    if not indexed:
        console.print("There is no index (afresh index makes one).")
    elif not disagree:
        console.print("The index agrees with them.")
        if due := facts["index"]["due"]:
            waits = "waits" if due == 1 else "wait"
            console.print(
                f"{show_count(due, 'page')} {waits} for the index, and what it holds of them was not compared."
            )
    else:
        end = "it was built anew, and agrees now" if mended else "it was left as it is"
        console.print(f"The index had {show_count(len(disagree), 'problem')}; {end}.")
        for each in disagree[:20]:
            console.print(labelled("", plain(each), 2))


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Progress on standard error, at a terminal only."""
    with errors.status(f"{what} ...") as status:
        yield lambda done, of: status.update(f"{what}: {done:,} of {of:,}")
