"""Makes the documentation as a site of pages, with MkDocs Material from PyPI.

    ci/site [--out DIR]

The pages are the READMEs of this repository: those that README.md links to, directly or not, and
the files that they name. Three pages are written here: the commands, from `tollens --help`; the
claims, from `tollens explain`; the runtime's interface, from its headers.

Exit code: 0 made, 1 a link or an anchor leads nowhere, 2 it could not be made.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import manual
from contents import BUILD, ROOT, Unmade, attempt, output, python_with, tracked, version

DOCS = BUILD / "site-pages"
PYTHON = BUILD / "site-python"
PACKAGES = ("mkdocs==1.6.1", "mkdocs-material==9.6.23")
HEADERS = ROOT / "runtime/include/tollens"
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)(#[^)\s]*)?(\))")
LARGE = 1 << 20
NAV = [("Start", "README.md"), ("Gate your library", "ci/GATE.md"),
       ("Test a fleet", "ci/FLEET.md"),
       ("Soft device", "runtime/soft/README.md"), ("Commands", "commands.md"),
       ("JSON of every command", "hypotheses/JSON.md"), ("Runtime", "runtime/README.md"),
       ("Runtime interface", "api.md"), ("Kernels", "kernels/README.md"),
       ("Claims", "claims.md"), ("How verdicts are made", "hypotheses/README.md"),
       ("Reading a report", "reports/READING.md"), ("Reports", "reports/README.md"),
       ("Results", "reports/RESULTS.md"), ("Performance", "kernels/PERFORMANCE.md"),
       ("Published evidence", "reports/published/README.md"),
       ("Questions and errors", "ci/FAQ.md"), ("Contributing", "ci/CONTRIBUTING.md"),
       ("Changes", "ci/CHANGELOG.md")]
CONFIG = """site_name: Tollens
docs_dir: {docs}
site_dir: {out}
copyright: "Tollens {version}, Apache-2.0"
theme:
  name: material
  font: false
  features: [navigation.top, content.code.copy, search.suggest]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: indigo
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: indigo
plugins: [search]
markdown_extensions: [tables, fenced_code, toc]
validation:
  nav: {{omitted_files: ignore, not_found: warn}}
  links: {{not_found: warn, anchors: warn, unrecognized_links: warn}}
nav:
{nav}
"""


# ---- pages of this repository ------------------------------------------------------------------

def list_folder(folder: pathlib.Path) -> str:
    """For a folder without a README, a page that lists its files."""
    files = [pathlib.Path(name).relative_to(folder) for name in tracked(str(folder))]
    return f"# {folder}\n\n" + "".join(f"* {file}\n" for file in files)


def stage_page(page: pathlib.Path, text: str, docs: pathlib.Path) -> list[pathlib.Path]:
    """Writes a page; a link to a folder becomes one to its page. Returns what it links to."""
    found: list[pathlib.Path] = []

    def rewrite(match: re.Match) -> str:
        before, link, anchor, after = match.groups(default="")
        if not link or re.match(r"[a-z]+:", link):
            return match[0]
        target = pathlib.Path(os.path.normpath(page.parent / link))
        if (ROOT / target).is_dir():
            link, target = f"{link.rstrip('/')}/README.md", target / "README.md"
        found.append(target)
        return before + link + anchor + after

    place = docs / page
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(LINK.sub(rewrite, text))
    return found


def stage(docs: pathlib.Path) -> int:
    """All pages that README.md leads to, and the files that they name. Returns how many pages."""
    left = [pathlib.Path(page) for _, page in NAV if (ROOT / page).exists()]
    seen, pages = set(left), 0
    while left:
        path = left.pop()
        whole = ROOT / path
        found: list[pathlib.Path] = []
        is_folder = path.name == "README.md" and whole.parent.is_dir()
        if path.suffix == ".md" and (whole.is_file() or is_folder):
            text = whole.read_text() if whole.is_file() else list_folder(path.parent)
            found = stage_page(path, text, docs)
            pages += 1
        elif whole.is_file() and whole.stat().st_size < LARGE:
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(whole, docs / path)
        fresh = [one for one in found if one not in seen]
        seen.update(fresh)
        left += fresh
    return pages


# ---- the pages that are written ----------------------------------------------------------------

def commands_page(program: pathlib.Path) -> str:
    text = "# Commands\n\n" + fenced(manual.ask(program))
    for name in manual.OWN_HELP:
        text += f"\n## tollens {name}\n\n" + fenced(manual.ask(program, *name.split()))
    return text


def fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


def claims_page(program: pathlib.Path) -> str:
    names = [claim["id"] for claim in
             json.loads(output(program, "list", "--json"))["claims"] if not claim["plugin"]]
    text = "# Claims\n\nAs `tollens explain` prints them. A claim is never proved: it survives.\n"
    for claim in json.loads(output(program, "explain", *names, "--json"))["claims"]:
        text += f"\n## {claim['id']}: {claim['title']}\n\n"
        for member in ("claim", "prediction", "falsified_if", "method", "control", "confounders",
                       "source"):
            text += f"**{member.replace('_', ' ').capitalize()}.** {plain(claim[member])}\n\n"
        text += f"**Survives if.** {claim['direction'].replace('_', ' ')} {claim['threshold']:g} " \
                f"{claim['unit']}.\n\n| saboteur | must be | fault |\n|---|---|---|\n"
        for one in claim["saboteurs"]:
            text += f"| `{one['name']}` | {one['must']} | {plain(one['words'])} |\n"
    return text


def plain(text: str | None) -> str:
    """Text whose signs mean nothing to Markdown."""
    return re.sub(r"([\\*_`|<>\[\]])", r"\\\1", text or "")


def without_marks(comment: str) -> str:
    lines = re.sub(r"^/\*+|\*+/$", "", comment.strip()).splitlines()
    return "\n".join(re.sub(r"^ \*( |$)", "", line) for line in lines).strip()


def header_page(header: pathlib.Path) -> str:
    """The declarations of a header after their comments, as they are written there."""
    text = header.read_text()
    opening = re.match(r"\s*(/\*.*?\*/)", text, re.DOTALL)
    page = f"\n## {header.name}\n\n{plain(without_marks(opening[1])) if opening else ''}\n"
    body = text[opening.end():] if opening else text
    for block in re.split(r"\n\s*\n", body):
        shown = "\n".join(line for line in block.splitlines() if not line.startswith("#")).strip()
        if re.search(r"\b(tol|vram|TOL)_\w+", shown):
            page += f"\n```c\n{shown}\n```\n"
    if header.name == "status.h":
        listed = re.findall(r'^TOL_STATUS\((\w+), "(.*)"\)', (HEADERS / "status.def").read_text(),
                            re.MULTILINE)
        page += "\n| status | meaning |\n|---|---|\n"
        page += "".join(f"| `TOL_{name}` | {plain(words)} |\n" for name, words in listed)
    return page


def api_page() -> str:
    names = re.findall(r'#include "(\w+\.h)"', (HEADERS / "tollens.h").read_text())
    return "# Runtime interface\n\nEach header of `tollens.h`, with its comments.\n" + \
        "".join(header_page(HEADERS / name) for name in names)


# ---- the site ----------------------------------------------------------------------------------

def mkdocs() -> pathlib.Path:
    return python_with(PYTHON, *PACKAGES).with_name("mkdocs")


def make(out: pathlib.Path, docs: pathlib.Path = DOCS, planted: str = "") -> tuple[int, list[str]]:
    """The number of pages, and MkDocs' complaints about links. Planted: text at the end of the
    first page, for tests."""
    program, builder = BUILD / "tollens", mkdocs()
    shutil.rmtree(docs, ignore_errors=True)
    docs.mkdir(parents=True)
    pages = stage(docs)
    for name, text in (("commands.md", commands_page(program)), ("claims.md", claims_page(program)),
                       ("api.md", api_page())):
        (docs / name).write_text(text)
    with (docs / "README.md").open("a") as first:
        first.write(planted)
    config = docs.with_suffix(".yml")
    nav = "".join(f'  - "{title}": {page}\n' for title, page in NAV if (docs / page).exists())
    config.write_text(CONFIG.format(docs=docs, out=out, version=version(), nav=nav))
    said = attempt(builder, "build", "--clean", "-f", config, why="MkDocs failed",
                   env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return pages + 3, [line for line in said.splitlines() if "WARNING" in line]


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/site", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "site")
    options = parser.parse_args()
    try:
        pages, wrong = make(options.out.resolve())
    except (Unmade, OSError, subprocess.CalledProcessError) as error:
        print(f"site: {error}", file=sys.stderr)
        return 2
    for line in wrong:
        print(f"site: {line}")
    print(f"summary: {pages} pages, {len(wrong)} links that lead nowhere: {options.out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
