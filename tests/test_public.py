"""The public door and the pages that speak of it cannot drift apart."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import afresh
from afresh import cli, config, errors

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_every_public_name_is_there_and_none_is_missing() -> None:
    assert afresh.__all__ == sorted(afresh.__all__)
    for name in afresh.__all__:
        assert getattr(afresh, name).__name__ == name
    public = {name for name in vars(afresh) if name[0].isupper() and inspect.isclass(getattr(afresh, name))}
    assert public <= set(afresh.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        afresh.nothing_of_ours  # noqa: B018


def test_every_error_is_in_the_tree_that_its_module_draws() -> None:
    drawn = set(re.findall(r"\b[A-Z]\w+(?=\s{2,}|\n)", errors.__doc__ or ""))
    defined = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert defined <= drawn


def test_the_settings_page_is_current() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == config.reference(), "run `make docs`"


def test_every_setting_stands_in_the_template() -> None:
    once, tables = config.template().split("# [[site]]")
    site = "# [[site]]" + tables.split("\n\n")[0]
    kind = "# [[kind]]" + tables.split("# [[kind]]")[1].split("\n\n")[0]
    serve = "# [[serve]]" + tables.split("# [[serve]]")[1].split("\n\n")[0]
    base = "# [[database]]" + tables.split("# [[database]]")[1].split("\n\n")[0]
    query = "# [[query]]" + tables.split("# [[query]]")[1].split("\n\n")[0]
    notify = "# [[notify]]" + tables.split("# [[notify]]")[1].split("\n\n")[0]
    tables = f"{site}\n{kind}\n{serve}\n{base}\n{query}\n{notify}"
    several = config.parse(re.sub(r"^# ", "", tables, flags=re.MULTILINE))
    assert several.notify[0].pages == ("https://example.com/shop/*",)
    assert several.query[0].database == several.database[0].name == "shop"
    assert (several.site[0].host, several.kind[0].name) == ("example.com", "product")
    assert several.serve[0].host == "www.example.com"
    uncommented = re.sub(r"^# (\w+ = )", r"\1", once, flags=re.MULTILINE)
    assert config.parse(uncommented) == config.parse(config.template()) == config.Config()
    assert uncommented.count(" = ") >= 15


COMMANDS = sorted(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_shows_an_example(name: str) -> None:
    assert f"afresh {name}" in README
    command = typer.main.get_command(cli.app).commands[name]  # type: ignore[attr-defined]
    assert f"Example: afresh {name}" in (command.help or "")
    assert all(getattr(parameter, "help", None) for parameter in command.params)


def test_links_in_the_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_light_commands_load_nothing_heavy() -> None:
    """`afresh --help` and `afresh status` must be instant: numba alone takes over a second, numpy a tenth."""
    light = ", ".join(f"afresh.cli.{name}" for name in ("opening", "status", "show"))
    code = f"import sys, {light}; print({{'numba', 'numpy'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "afresh", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(afresh.__version__)


def test_the_readme_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(snippet, {})
    expected = re.findall(r"# (.+)\n$", snippet)[-1]
    assert capsys.readouterr().out.strip() == expected
