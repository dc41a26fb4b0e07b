"""What pages and comments may not say, for ci/tidy.py.

Retired idioms (ci/STYLE.md, "Words") and names (GONE): each has a plain word in the field. Links
and paths in backticks on a page must lead somewhere; a link such as [`soft_lower`](lower/lower.c)
names a function besides, which the file must contain. A measured time or rate may be on a generated
page only (GENERATED), so that no figure goes stale in prose.
"""

import pathlib
import re
from collections.abc import Iterable, Iterator

UNITS = ("block|warp|thread|warpgroup|cluster|device|GPU|multiprocessor|row|column|lane|process|"
         "kernel|token|file|line|run|claim|call|launch|stream|step|page|seed|suite|machine|test")
IDIOMS = {
    rf"\b(?:one|an?\s+\w+)\s+an?\s+(?:{UNITS})\b(?!['-])": "one per X",
    r"\bbehind\b": "after, following, below",
    r"\bblocks that stay\b": "persistent thread blocks",
    r"\bshares of (?:the )?steps\b|\bsplit steps\b": "split-K",
    r"\bseconds of (?:the )?processors?\b|\bprocessor seconds\b": "CPU seconds",
    r"\bprocessors of (?:its|their) own\b": "pinned to separate cores",
    r"\bas many as there are\b": "the number of",
    r"\bstands? behind\b|\bgo(?:es)? round\b|\bcomes? by\b|\bhas to do with\b": "say who does what",
    r"\b(?:is|are|was|were) told\b": "say who passes what to whom",
    r"\bin front of it\b": "before it",
}
PATTERNS = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in IDIOMS.items()]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# Which lists these idioms and names, so that they are found.
EXEMPT = ("ci/tidying/prose.py", "ci/tidying/prose_test.py")

# Private words of this project, and what each is called now. What plugins may call keeps its name.
GONE = {
    r"hyp_folder_\w+": "hyp_directory_*, hyp_file_*",
    r"hyp_tell_\w+": "hyp_console_*",
    r"hyp_repeats_tell": "hyp_repeats_print",
    r"hyp_wish\w*": "hyp_run_options*",
    r"(?!HYP_GUESTS_MAX\b)hyp_guest\w*": "hyp_plugin_*",
    r"hyp_hoard\w*": "hyp_memory_exhaustion*",
    r"hyp_grinder\w*": "hyp_concurrent_kernels*",
    r"hyp_crowd\w*|hyp_command_crowd": "hyp_thread_stress*, hyp_command_threads",
    r"soft_wish\w*": "soft_access_kind, soft_stream_hints",
    r"soft_moment\w*": "soft_event_point",
    r"soft_blow\w*": "soft_stream_fault",
    r"soft_harm\w*": "soft_call_fault",
    r"soft_together\w*": "soft_warp_sync",
    r"kernel[-_]tours?": "kernel_sweep",
    r"readme_wish\w*": "readme_figures",
}
GONE_NAMES = [(re.compile(rf"\b(?:{gone})\b", re.IGNORECASE), now) for gone, now in GONE.items()]

GENERATED = ("reports/RESULTS.md", "kernels/PERFORMANCE.md", "hypotheses/REQUIREMENTS.md",
             "hypotheses/JSON.md", "reports/published/INDEX.md")
FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*\s?(?:[numµ]s|TFLOP/s|[GMT]i?B/s|tokens (?:a|per) second|"
                    r"tokens/s)(?![\w-])|\b\d+(?:\.\d+)? (?:times|of) (?:cuBLAS|cuDNN|PyTorch|"
                    r"llama\.cpp|NCCL|ggml)")
# What bounds a figure makes it a limit that somebody chose, and no measurement.
LIMIT = re.compile(r"(?:at most|at least|below|above|under|over|within|every|each|after|"
                   r"exceeds?|threshold|deadline|timeout|limit|kernels? of|default|than|=|for)"
                   r"\W+(?:\w+\W+)?$", re.IGNORECASE)

LINK = re.compile(r"\[([^\]\[]+)\]\(([^)\s]+)\)")
TICKED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)+/?|[\w-]+\.(?:c|h|cu|cuh|def|py|md|toml)")
# What is not there until something makes it, or is elsewhere.
MADE = re.compile(r"^(?:\.|OUT|build|evidence|out|lib|bin|include|usr|etc|proc|dev|tmp|shared|"
                  r"fleet|histograms|attacks|plots|seed\d|H\d+|SUM)/"
                  r"|^(?:merge|summary|report|compare|machine|cuda)\."
                  r"|^[a-z](?:_test)?\.[ch]$|NAME")


def plain_text(path: pathlib.PurePath, text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of what people read: a page, or comments with their lines joined."""
    if path.suffix == ".md":
        yield from enumerate(text.split("\n"), 1)
        return
    if path.suffix not in (".c", ".h", ".cu", ".cuh", ".def"):
        yield from ((number, line[line.index("#"):]) for number, line
                    in enumerate(text.split("\n"), 1) if "#" in line)
        return
    for found in COMMENT.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, re.sub(r"\n\s*\*?", " ", found.group())


def idioms(path: pathlib.PurePath, text: str) -> Iterator[str]:
    if str(path) in EXEMPT:
        return
    for number, line in plain_text(path, text):
        prose = TICKED.sub("", line)
        for pattern, plain in PATTERNS:
            found = pattern.search(prose)
            if found:
                yield f'{path}:{number}: "{found.group()}": write {plain}'


def gone_names(path: pathlib.PurePath, text: str) -> Iterator[str]:
    """Also in code; the history keeps its words."""
    if str(path) in (*EXEMPT, "ci/CHANGELOG.md"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, now in GONE_NAMES:
            for name in pattern.findall(line):
                yield f"{path}:{number}: {name} is gone: it is called {now} now"


def figures(path: pathlib.PurePath, text: str) -> Iterator[str]:
    """Measured figures on a page that is not generated. Code and backticks are not prose."""
    if path.suffix != ".md" or str(path) in GENERATED:
        return
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        if is_code or line.startswith("    "):
            continue
        prose = TICKED.sub("", line)
        for found in FIGURE.finditer(prose):
            if not LIMIT.search(prose[:found.start()]):
                yield (f"{path}:{number}: the figure {found.group()} is on a page that nothing "
                       "generates")


def broken_links(path: pathlib.PurePath, text: str, root: pathlib.Path) -> Iterator[str]:
    """Of a page, whose path is relative to root."""
    for number, line in enumerate(text.split("\n"), 1):
        for shown, target in LINK.findall(line):
            if re.match(r"[a-z]+:|#", target):
                continue
            place = (root / path).parent / target.split("#")[0]
            name = re.fullmatch(r"`(\w+)`", shown)
            if not place.exists():
                yield f"{path}:{number}: the link to {target} leads nowhere"
            elif name and place.suffix in (".c", ".h", ".py") and not re.search(
                    rf"\b{name.group(1)}\b", place.read_text(encoding="utf-8")):
                yield f"{path}:{number}: {target} has no {name.group(1)}"


def dead_paths(path: pathlib.PurePath, text: str, known: Iterable[str]) -> Iterator[str]:
    """Paths in backticks that lead nowhere: from the root, from the page, or as includes are
    written, by their last parts."""
    if path.suffix != ".md":
        return
    names = set(known)
    names |= {str(folder) for name in names for folder in pathlib.PurePosixPath(name).parents}
    ends = {name[at + 1:] for name in names for at, one in enumerate(name) if one == "/"}
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        for found in () if is_code else TICKED.findall(line):
            named = found.rstrip("/")
            if not PATH.fullmatch(found) or MADE.search(found) or "*" in found:
                continue
            if not {named, str(path.parent / named)} & names and named not in ends:
                yield f"{path}:{number}: `{found}` is not in the tree"
