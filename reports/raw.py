"""Links from a report to the files of the evidence."""

import os
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote

from . import words


def with_bytes(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count >= 10240 else f"{count} B"


@dataclass
class Raw:
    """The files of a run, and their place relative to the page: below base, or in an archive, whose
    files a page cannot open."""

    files: dict[str, int] = field(default_factory=dict)
    base: str | None = None
    archive: str = ""

    def link(self, name: str, text: str) -> str:
        """The text, linked to the file if there is one. The text is HTML."""
        if self.base is None or name not in self.files:
            return text
        return f'<a href="{quote(self.base + name)}">{text}</a>'

    def of_claim(self, claim: str) -> list[str]:
        return [name for name in self.files if name.startswith(f"{claim}/")]

    def beside(self, claims: Iterable[str]) -> list[str]:
        """The files of no claim."""
        own = tuple(f"{claim}/" for claim in claims)
        return [name for name in self.files if not name.startswith(own)]

    def listed(self, names: list[str]) -> str:
        """All of them, folded, a paragraph for each folder."""
        if not names:
            return ""
        by_folder: dict[str, list[str]] = {}
        for name in names:
            by_folder.setdefault(name.rpartition("/")[0], []).append(name)
        parts = []
        for folder, inside in by_folder.items():
            items = "".join(f"<li>{self.link(name, escape(name.rpartition('/')[2]))} "
                            f"<small>{with_bytes(self.files[name])}</small></li>"
                            for name in inside)
            parts.append(f"<p><b>{escape(folder) or 'files of the run'}</b></p><ul>{items}</ul>")
        if self.base is None:
            parts.insert(0, f'<p class="note">In the archive <a href="{quote(self.archive)}">'
                            f"{escape(self.archive.rpartition('/')[2])}</a>. tollens report "
                            "--unpack writes them beside the report, with links.</p>")
        count = words.counted(len(names), "raw files")
        return f'<details class="raw"><summary>{count}</summary>{"".join(parts)}</details>'


def of_run(files: dict[str, int], where: pathlib.Path, out: pathlib.Path) -> Raw:
    """where: the folder of the files, or their archive; out: where the page will be."""
    away = pathlib.PurePath(os.path.relpath(where.resolve(), out.resolve())).as_posix()
    if not where.is_dir():
        return Raw(files, None, away)
    return Raw(files, "" if away == "." else f"{away}/")
