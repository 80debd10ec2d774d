"""The compose file against the program, without an engine: all that it names is there."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
import yaml

import afresh.cli.build
from afresh.cli import app
from afresh.cli.crew import require_fit
from afresh.cli.opening import settings

ROOT = Path(__file__).parents[2]
FILE = ROOT / "etc" / "compose.yaml"
TEXT = FILE.read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
RECIPE: list[tuple[str, str]] = [
    tuple(line.split(" ", 1))
    for line in COMPOSE["x-node"]["build"]["dockerfile_inline"].splitlines()
    if line and not line.startswith("#")
]
CONTEXT = (FILE.parent / COMPOSE["x-node"]["build"]["context"]).resolve()


def steps(kind: str) -> list[str]:
    return [rest for step, rest in RECIPE if step == kind]


def options(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def test_the_image_is_made_of_this_source_alone() -> None:
    """The package index may have another program of this name."""
    copied = [source for step in steps("COPY") for source in step.split()[:-1]]
    assert all((CONTEXT / source).exists() for source in copied)
    ignored = (CONTEXT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied)
    project = tomllib.loads((CONTEXT / "pyproject.toml").read_text())["project"]
    assert {"pyproject.toml", "src", project["readme"], *project["license-files"]} <= set(copied)
    (install,) = [step for step in steps("RUN") if step.startswith("pip install")]
    *_, constraints, source = shlex.split(install)
    assert constraints.removeprefix("/source/") in copied
    folder, extra = re.fullmatch(r"(.+)\[(\w+)\]", source).groups()  # type: ignore[union-attr]
    assert folder == "/source"
    assert extra in project["optional-dependencies"]
    assert project["requires-python"] == ">=" + re.fullmatch(r"python:([\d.]+)-slim", *steps("FROM"))[1]  # type: ignore[index]


def test_what_is_compiled_in_the_image_can_be() -> None:
    (program,) = [shlex.split(step)[-1] for step in steps("RUN") if step.startswith("python -c")]
    assert program == "from afresh.cli.build import compile_all; compile_all()"
    assert callable(afresh.cli.build.compile_all)


def test_the_settings_of_the_image_lead_to_the_database(tmp_path: Path) -> None:
    (written,) = [shlex.split(step)[1] for step in steps("RUN") if step.startswith("printf")]
    file = tmp_path / "afresh.toml"
    file.write_text(written.replace("\\n", "\n"))
    parts = urlsplit(require_fit(settings(file, None)).secret)
    database = SERVICES[str(parts.hostname)]["environment"]
    assert (parts.username, parts.path) == (database["POSTGRES_USER"], f"/{database['POSTGRES_DB']}")
    assert COMPOSE["x-node"]["environment"]["PGPASSWORD"] == database["POSTGRES_PASSWORD"]


def test_the_commands_that_it_shows_exist() -> None:
    known = typer.main.get_command(app)
    shown = re.findall(r"^#   docker compose exec head afresh (.+)$", TEXT, re.MULTILINE)
    assert shown
    for line in shown:
        command: Any = known
        for word in shlex.split(line):
            if word in getattr(command, "commands", {}):
                command = command.commands[word]
            elif word.startswith("--"):
                assert word in options(command), line
        assert not getattr(command, "commands", {}), line


def test_what_must_be_set_is_set_in_what_it_shows() -> None:
    assert set(re.findall(r"\$\{(\w+):\?", TEXT)) == set(re.findall(r"^#   export (\w+)=", TEXT, re.MULTILINE))


@pytest.mark.filterwarnings("ignore")  # the library's own
def test_ray_is_started_with_options_that_it_has() -> None:
    from ray.scripts.scripts import start

    room = int(COMPOSE["x-node"]["shm_size"].removesuffix("mb")) << 20
    for name in ("head", "node"):
        ray, verb, *given = shlex.split(SERVICES[name]["command"])
        assert (ray, verb) == ("ray", "start")
        values = dict((*option.split("=", 1), "")[:2] for option in given)
        assert set(values) <= options(start)
        assert "--block" in values
        assert int(values["--object-store-memory"]) < room
        assert values.get("--address", "head:6379").split(":")[0] in SERVICES
