"""The claims beyond H1 to H13, read from hypotheses/beyond/beyond.toml.

    python3 -m reports.beyond                                   checks the file
    python3 -m reports.beyond --c build/generated/beyond.def    and writes the plugins' table
"""

import argparse
import pathlib
import re
import sys
from typing import Any

from . import thresholds
from .thresholds import c_string as text

WORDS = ("claim", "prediction", "falsified_if", "method", "control", "confounders")
ID = re.compile(r"[A-Z][A-Z0-9]{1,7}")  # as hyp_plugin_claim.id; H and a number are the others


def check(name: str, claim: dict[str, Any]) -> None:
    """A claim of beyond.toml: its numbers, its text and its saboteurs are in one table."""
    thresholds.check_claim(name, claim)
    if not ID.fullmatch(name) or re.fullmatch(r"H[0-9]+", name):
        raise ValueError(f"[{name}] is not an id: 2 to 8 capital letters and digits, a letter "
                         "first, and not H and a number")
    for key in (*WORDS, "plugin"):
        if key not in claim:
            raise ValueError(f"[{name}] has no {key}")
        thresholds.check_text(name, key, claim[key])
    if not claim["plugin"].isidentifier():
        raise ValueError(f"[{name}] plugin is not the name of a folder: {claim['plugin']!r}")
    if not isinstance(claim.get("measured", False), bool):
        raise ValueError(f"[{name}] measured is neither true nor false: {claim['measured']!r}")
    for key in claim:
        if key not in (*thresholds.KEYS, *WORDS, *thresholds.FORCED, "plugin", "measured", "alone",
                       "limits"):
            raise ValueError(f"[{name}] has a key that is not known: {key}")
    thresholds.check_sabotage(name, {key: claim[key] for key in (*thresholds.FORCED, "limits")
                                    if key in claim})


def load(folder: pathlib.Path = thresholds.HYPOTHESES) -> dict[str, Any]:
    """Reads and checks beyond.toml. ValueError says what is wrong and where."""
    path = folder / "beyond/beyond.toml"
    claims = thresholds.read(path)
    for name, claim in claims.items():
        try:
            check(name, claim)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    return claims


def as_c(claims: dict[str, Any]) -> str:
    """beyond.toml as rows for the C preprocessor. A row is named after its plugin: WORKER_CLAIM."""
    lines = ["/* Written by reports/thresholds.py from beyond.toml. */"]
    macros = [f"{plugin.upper()}_{kind}"
              for plugin in dict.fromkeys(claim["plugin"] for claim in claims.values())
              for kind in ("SABOTEURS", "CLAIM")]
    for macro in macros:
        lines += [f"#ifndef {macro}", f"#define {macro}(id, ...)", "#endif"]
    for name, claim in claims.items():
        saboteurs = [f"{{.name = {text(saboteur)}, .forced = {forced}}}"
                     for verdict, forced in thresholds.FORCED.items()
                     for saboteur in claim.get(verdict, [])]
        members = [f".id = {text(name)}",
                   *(f".{key} = {text(claim[key])}" for key in thresholds.TEXTS),
                   *(f".{key} = {float(claim[key])!r}" for key in ("threshold", "tolerance")),
                   f".direction = {thresholds.DIRECTIONS[claim['direction']]}",
                   f".shares_device = {str(not claim.get('alone', False)).lower()}",
                   f".words = {{.is_measured = {str(claim.get('measured', False)).lower()}, "
                   + ", ".join(f".{key} = {text(claim[key])}" for key in WORDS) + "}"]
        if "limits" in claim:
            ladders = ", ".join([*map(text, claim["limits"]), "NULL"])
            members.append(f".ladders = (const char *const[]){{{ladders}}}")
        macro = claim["plugin"].upper()
        lines.append(f"{macro}_SABOTEURS({name}, {', '.join(saboteurs)}, {{.name = NULL}})")
        lines.append(f"{macro}_CLAIM({name}, {', '.join(members)})")
    return "\n".join([*lines, *(f"#undef {macro}" for macro in macros)]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="The claims beyond H1 to H13.")
    parser.add_argument("--c", type=pathlib.Path, metavar="FILE",
                        help="where to write the table for the plugins; default: nowhere")
    arguments = parser.parse_args()
    try:
        table = as_c(load())
    except ValueError as error:
        print(f"beyond: {error}", file=sys.stderr)
        return 2
    if arguments.c is not None:
        arguments.c.parent.mkdir(parents=True, exist_ok=True)
        arguments.c.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
