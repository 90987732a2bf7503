"""How MkDocs builds the site from pages that are also to be read where the code is.

Links that lead out of `docs/`, to examples, sources and the documents beside
the README, lead in the site to pages that are made of those files. A page that
would load something from elsewhere is refused.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
FOLDER = "files"  # of the site, in which pages of files outside docs/ are
LINK = re.compile(r"(?<=\]\()(?!https?:)([^)#\s]+)(#[^)\s]*)?(?=\))")
ROW = re.compile(r"^\|.*$", re.MULTILINE)  # of a table
CODE = re.compile(r"`[^`]*`")
LOADED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*\s(?:src|href)=\"?(?:https?:)?//[^>]*>"
)
HIDDEN = "---\nsearch:\n  exclude: true\n---\n"  # a page that the search does not find
LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml"}
NAVIGATION = ("CONTRIBUTING.md", "CHANGELOG.md")  # that have places there


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file outside docs/ that a page links to."""
    waiting = [*NAVIGATION]
    for file in files.documentation_pages():
        waiting += _outside(file.content_string, "docs")
    done: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in done or not (ROOT / path).is_file():
            continue
        done.add(path)
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            waiting += _outside(text, posixpath.dirname(path))
        page = File.generated(
            config,
            _page_of(path),
            content=_page(path, text),
            inclusion=InclusionLevel.INCLUDED if path in NAVIGATION else InclusionLevel.NOT_IN_NAV,
        )
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files outside docs/ to their pages, and let tables be what they are elsewhere.

    In the code of a table a bar is escaped as code hosts want it, which MkDocs does not know.
    """
    here = page.file.src_uri
    source = here.removeprefix(FOLDER + "/") if here.startswith(FOLDER + "/") else f"docs/{here}"
    folder = posixpath.dirname(source)

    def lead(link: re.Match[str]) -> str:
        path = _resolve(folder, link[1])
        if path.startswith("docs/"):
            target = path.removeprefix("docs/")
        elif path == "README.md":
            target = "index.md"
        elif (ROOT / path).is_file():
            target = _page_of(path)
        else:
            return link[0]  # MkDocs will complain
        return posixpath.relpath(target, posixpath.dirname(here) or ".") + (link[2] or "")

    markdown = ROW.sub(
        lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown
    )
    return LINK.sub(lead, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that loads something from elsewhere: the site works without a network."""
    found = LOADED.search(output)
    if found is not None:
        raise PluginError(f"{page.file.src_uri} would load {found[0]}; have it in docs/ instead")
    return output


def _outside(text: str, folder: str) -> list[str]:
    """The files that a document in a folder links to and that are not in docs/."""
    paths = [_resolve(folder, link[1]) for link in LINK.finditer(text)]
    return [path for path in paths if not path.startswith("docs/") and path != "README.md"]


def _resolve(folder: str, link: str) -> str:
    """Where a link leads, as a path from the root of the project."""
    return posixpath.normpath(posixpath.join(folder, link))


def _page_of(path: str) -> str:
    return f"{FOLDER}/{path}" if path.endswith(".md") else f"{FOLDER}/{path}.md"


def _page(path: str, text: str) -> str:
    """The content of a file as a page."""
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(Path(path).suffix, "text")
    title = f"# {Path(path).name}\n\nThe file `{path}`.\n\n"
    return f"{HIDDEN}{title}````{language}\n{text.rstrip()}\n````\n"
