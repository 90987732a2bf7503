"""The commands and programs in README and docs/ run as they stand, and no page lags behind.

Blocks marked `bash` and `python` are run, those of one document in their order, each in the folder
in which the one before has ended, the first in one that is like a checkout; blocks marked otherwise
(`sh`, `json`, ...) are not. Evolutions and recoveries that the shell starts run at reduced size.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import swarmbo
from tests.command import PATIENCE

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SWARMBO = """\
case "$1" in
    evolve) set -- "$@" --evaluations 300 --batch 50 --ticks 150 ;;
    recover) set -- "$@" --ticks 150 ;;
esac
exec "{python}" -m swarmbo "$@"
"""
SHELLS = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": ["python", "-c"]}
WHERE = "\npwd > '{}'\n"  # the folder in which a block of the shell ends


def blocks(document: Path) -> list[tuple[str, str]]:
    """The blocks of a document that can be run: language and text."""
    found = BLOCK.findall(document.read_text())
    return [(language, text) for language, text in found if language in SHELLS]


@pytest.mark.skipif(os.name == "nt", reason="the documents speak to a POSIX shell")
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d)], ids=lambda d: d.name)
def test_commands_of_the_document_run(document: Path, tmp_path: Path) -> None:
    programs, folder, where = tmp_path / "bin", tmp_path / "checkout", tmp_path / "where"
    programs.mkdir()
    folder.mkdir()
    for name, command in (("python", 'exec "{python}" "$@"'), ("swarmbo", SWARMBO)):
        (programs / name).write_text("#!/bin/sh\n" + command.format(python=sys.executable))
        (programs / name).chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    where.write_text(str(folder))
    settings = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(swarmbo.__file__).parent.parent),
    }
    for language, text in blocks(document):
        program = text + WHERE.format(where) if language == "bash" else text
        done = subprocess.run(
            [*SHELLS[language], program],
            cwd=where.read_text().strip(),
            env=settings,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"
    if document.name == "README.md":  # what it makes is where git ignores it
        assert sorted(path.name for path in folder.iterdir()) == ["examples", "tour"]
        assert len(list((folder / "tour").iterdir())) > 10
        assert "tour/" in (ROOT / ".gitignore").read_text().split()


@pytest.mark.parametrize("document", [*DOCUMENTS, *ROOT.glob("C*.md")], ids=lambda path: path.name)
def test_links_of_the_document_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def tool(name: str) -> Any:
    """A program of docs/tools as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_of_commands_says_what_the_commands_say() -> None:
    commands = tool("commands")
    remedy = "the commands have changed: run python docs/tools/commands.py"
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), remedy


def test_page_of_the_python_api_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    shown = re.findall(r"^::: swarmbo\.(\w+)$", page, re.MULTILINE) + re.findall(r"`(\w+)`", page)
    assert sorted({"swarmbo", *swarmbo.__all__} ^ set(shown)) == []


def test_pictures_can_be_drawn_again_and_each_is_in_a_page(tmp_path: Path) -> None:
    tool("pictures").main(tmp_path)
    pages = "".join(document.read_text() for document in DOCUMENTS)
    drawn = sorted(picture.name for picture in tmp_path.iterdir())
    assert len(drawn) > 0
    for name in drawn:
        assert (ROOT / "docs" / "images" / name).stat().st_size > 1000
        assert f"images/{name})" in pages


def test_site_refuses_a_page_that_loads_something_from_elsewhere() -> None:
    exceptions = pytest.importorskip("mkdocs.exceptions")
    check = tool("hooks").on_post_page
    page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
    harmless = '<a href="https://example.org">elsewhere</a><script src="assets/here.js"></script>'
    assert check(harmless, page, None) == harmless
    for loaded in (
        '<script async src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<img alt="x" src="http://example.org/x.png">',
    ):
        with pytest.raises(exceptions.PluginError, match=r"index\.md would load"):
            check(harmless + loaded, page, None)
