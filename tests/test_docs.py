"""The commands and programs in README and docs/ run as they stand.

Blocks marked `bash` and `python` are run, those of one document in one folder and in their order;
blocks marked otherwise (`sh`, `json`, ...) are not. Evolution runs at reduced size.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import swarmbo

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REDUCED = '$(test "$1" = evolve && echo --evaluations 300 --batch 50)'
SHELLS = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": ["python", "-c"]}


def blocks(document: Path) -> list[tuple[str, str]]:
    """The blocks of a document that can be run: language and text."""
    found = BLOCK.findall(document.read_text())
    return [(language, text) for language, text in found if language in SHELLS]


@pytest.mark.skipif(os.name == "nt", reason="the documents speak to a POSIX shell")
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d)], ids=lambda d: d.name)
def test_commands_of_the_document_run(document: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("python", '"$@"'), ("swarmbo", f'-m swarmbo "$@" {REDUCED}')):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command}\n')
        (programs / name).chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    settings = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(swarmbo.__file__).parent.parent),
    }
    for language, text in blocks(document):
        done = subprocess.run(
            [*SHELLS[language], text],
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_of_the_document_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []
