"""The list of every run that was published: reports/published/index.toml, and its page INDEX.md.

    python3 -m reports.published_index FOLDER...    prints the row of a folder, to fill in and add

A folder may leave the tree, but its row stays: it names the commit that holds the folder, and the
SHA-256 of its evidence.
"""

import hashlib
import pathlib
import sys
import tomllib

from . import archive, markdown

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "reports/published"
KEYS = ("name", "device", "code", "held", "sha256", "shows")
HEADINGS = ("run", "device", "measured", "what it shows", "in this tree", "commit that holds it",
            "SHA-256")
PAGE = """# Every run that was published

Written by `reports/written.py` from `index.toml`. *Measured* is the commit of the code that ran.
`git show COMMIT:reports/published/RUN/FILE` prints a file of a run, and
`git archive COMMIT reports/published/RUN | tar -x` fetches its folder, whether or not the folder
is in this tree. The SHA-256 is that of `evidence.tar.xz`. If a folder has no archive, it is that of
the list of its files, which this command prints:

    find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum

"""


def digest(folder: pathlib.Path) -> str:
    """The SHA-256 of a folder's evidence; if it has no archive, of the list of its files."""
    if (folder / archive.NAME).is_file():
        return hashlib.sha256((folder / archive.NAME).read_bytes()).hexdigest()
    files = {path.relative_to(folder).as_posix(): path
             for path in folder.rglob("*") if path.is_file()}
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
             for name, path in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def load(published: pathlib.Path = PUBLISHED) -> dict[str, dict[str, str]]:
    """The rows by name, oldest first. ValueError: a row is wrong, or a folder has none."""
    path = published / "index.toml"
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("run", [])
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        if set(row) != set(KEYS) or not all(isinstance(value, str) for value in row.values()):
            raise ValueError(f"{path}: a row needs the texts {', '.join(KEYS)}: {row}")
        if row["name"] in found:
            raise ValueError(f"{path} lists {row['name']} twice")
        found[row["name"]] = row
    for folder in sorted(path for path in published.glob("20*") if path.is_dir()):
        row = found.get(folder.name, {})
        if not row:
            raise ValueError(f"{path} does not list {folder.name}")
        if row["sha256"] != digest(folder):
            raise ValueError(f"{path}: {folder.name} has the SHA-256 {digest(folder)}, not "
                             f"{row['sha256']}")
    for name, row in found.items():
        if not row["held"] and not (published / name).is_dir():
            raise ValueError(f"{path}: {name} is gone, and its row names no commit that holds it")
    return found


def row_of(folder: pathlib.Path) -> str:
    """The row of a folder, in TOML; what only its author knows is empty."""
    values = {"name": folder.name, "sha256": digest(folder)}
    return "[[run]]\n" + "".join(f'{key} = "{values.get(key, "")}"\n' for key in KEYS)


def page(published: pathlib.Path = PUBLISHED) -> str:
    rows = [(row["name"], row["device"], row["code"] or "unknown", row["shows"],
             "yes" if (published / row["name"]).is_dir() else "no", row["held"] or "this one",
             row["sha256"]) for row in load(published).values()]
    return PAGE + markdown.table(HEADINGS, rows) + "\n"


if __name__ == "__main__":
    print("\n".join(row_of(pathlib.Path(name)) for name in sys.argv[1:]))
