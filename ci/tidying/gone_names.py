"""Names that are gone: each was a private word, and the field has its own (ci/STYLE.md).

An identifier that matches GONE may not come back. What plugins may call keeps its name (KEPT).
"""

import pathlib
import re

GONE = {
    r"hyp_folder_\w+": "hyp_directory_*, hyp_file_*",
    r"hyp_tell_\w+": "hyp_console_*",
    r"hyp_repeats_tell": "hyp_repeats_print",
    r"hyp_wish\w*": "hyp_run_options*",
    r"hyp_guest\w*": "hyp_plugin_*",
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
KEPT = {"HYP_GUESTS_MAX"}  # plugin ABI 1

PATTERNS = [(re.compile(rf"\b(?:{gone})\b", re.IGNORECASE), now) for gone, now in GONE.items()]


def is_checked(path: pathlib.Path) -> bool:
    """Whether the names in a file count: not in the history, nor in the list itself."""
    return path.name not in ("CHANGELOG.md", "gone_names.py", "gone_names_test.py") and (
        path.parts[:2] != ("reports", "published"))


def in_line(text: str) -> list[tuple[str, str]]:
    """The gone names in a line, and what each is called now."""
    return [(name, now) for pattern, now in PATTERNS for name in pattern.findall(text)
            if name not in KEPT]
