"""What `afresh plan --cluster` prints: sizes on paper."""

from dataclasses import asdict

import typer

from afresh.cli.terminal import as_json, console
from afresh.errors import InputError
from afresh.units import duration, show_duration, show_rate, show_size

SIZES = (1e6, 1e9, 1e12)


def show_sizes(every: str, *, json: bool) -> None:
    """Print what collections of three sizes need."""
    from afresh.cluster.sizing import MEASURED, Size, advice, size

    if not duration(every) > 0:
        raise InputError(f"No page can be crawled once in {every}.", hint="Give a time above 0, such as --every 7d.")
    found = [size(pages, duration(every)) for pages in SIZES]
    if json:
        facts = [{**asdict(each), "saturates": each.saturates, "advice": advice(each)} for each in found]
        typer.echo(as_json({"unit_costs": asdict(MEASURED), "sizes": facts}))
        return

    def line(name: str, show: "list[str]") -> None:
        console.print(f"{name:<18}" + "".join(f"{each:>20}" for each in show), highlight=False)

    def of(each: Size) -> list[tuple[str, str]]:
        return [
            ("pages", f"{each.pages:.0e}".replace("e+", "e")),
            ("crawls", show_rate(each.crawls)),
            ("workers", f"{each.workers:,}"),
            ("their cores", f"{each.cores:,.1f}"),
            ("their memory", show_size(round(each.memory))),
            ("network", f"{show_size(round(each.network))}/s"),
            ("database cores", f"{each.database_cores:,.1f}"),
            ("rows written", f"{each.rows:,.0f}/s"),
            ("log written", f"{show_size(round(each.logged))}/s"),
            ("state on disk", show_size(round(each.state))),
            ("bodies", show_size(round(each.bodies))),
            ("databases", f"{each.databases:,}"),
            ("cost a month", f"${each.cost:,.0f}"),
            ("for 10^6 pages", f"${each.cost / each.pages * 1e6:,.2f}"),
            ("one database by", each.saturates),
        ]

    console.print(f"Each page once in {show_duration(duration(every))} on average.")
    for lines in zip(*map(of, found), strict=True):
        line(lines[0][0], [shown for _, shown in lines])
    for each in found:
        console.print(f"{each.pages:.0e} pages: {advice(each)}.".replace("e+", "e"), highlight=False)
    console.print("Object storage and several databases are not built yet. A worker takes 16 GiB of memory at most.")
    console.print("Reckoned from unit costs and prices that --json names; what they mean: docs/cluster.md.")
