#!/usr/bin/env python3
"""The claims and their thresholds, read from hypotheses/thresholds.toml and sabotage.toml.

Nothing else reads those files: the build calls this program to write the harness's table, and the
reports import it.

    python3 reports/thresholds.py                                   checks both files
    python3 reports/thresholds.py --c build/generated/claims.def    and writes the harness's table
"""

import argparse
import json
import math
import pathlib
import sys
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib  # type: ignore[no-redef]

HYPOTHESES = pathlib.Path(__file__).resolve().parent.parent / "hypotheses"
OWN_MIN, OWN_MAX = 13, 48  # the specification's, and HYP_OWN_CLAIMS_MAX of claim.h
FORCED = {"falsified": "HYP_MUST_FALSIFY", "not_falsified": "HYP_MUST_NOT_FALSIFY",
          "not_survived": "HYP_MUST_NOT_SURVIVE"}
DIRECTIONS = {"at_most": "HYP_AT_MOST", "below": "HYP_BELOW", "above": "HYP_ABOVE"}
KEYS = ("title", "threshold", "tolerance", "unit", "direction", "source")


def check_claim(name: str, claim: dict[str, Any]) -> None:
    for key in KEYS:
        if key not in claim:
            raise ValueError(f"[{name}] has no {key}")
    for key in ("threshold", "tolerance"):
        number = claim[key]
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(f"[{name}] {key} is not a number: {number!r}")
        if not math.isfinite(number) or number < 0:
            raise ValueError(f"[{name}] {key} must be finite and not negative: {number}")
    direction = claim["direction"]
    if direction not in DIRECTIONS:
        raise ValueError(f"[{name}] direction must be one of {', '.join(DIRECTIONS)}: "
                         f"{direction!r}")


def check_sabotage(name: str, entry: dict[str, Any]) -> None:
    if not entry.get("falsified"):
        raise ValueError(f"[{name}] needs saboteurs under which it must be falsified")
    for key, saboteurs in entry.items():
        if key not in FORCED:
            raise ValueError(f"[{name}] {key} is not a verdict that a saboteur can force; use "
                             f"{', '.join(FORCED)}")
        if not isinstance(saboteurs, list) or not all(isinstance(s, str) for s in saboteurs):
            raise ValueError(f"[{name}] {key} must be a list of names")
    if ("not_falsified" in entry) != ("not_survived" in entry):
        raise ValueError(f"[{name}] needs both ends of a borderline pair")


def load(folder: pathlib.Path = HYPOTHESES) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reads and checks both files. ValueError says what is wrong and where."""
    tables = []
    for file in ("thresholds.toml", "sabotage.toml"):
        try:
            with open(folder / file, "rb") as stream:
                tables.append(tomllib.load(stream))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{folder / file}: {error}") from error
    thresholds, sabotage = tables
    names = [f"H{n}" for n in range(1, min(max(len(thresholds), OWN_MIN), OWN_MAX) + 1)]
    for file, table in (("thresholds.toml", thresholds), ("sabotage.toml", sabotage)):
        for name in table:
            if name not in names:
                raise ValueError(f"{folder / file}: [{name}] is not one of the claims H1 to "
                                 f"H{len(names)} of thresholds.toml, which may have no gaps")
    for name in names:
        if name not in thresholds:
            raise ValueError(f"{folder / 'thresholds.toml'}: [{name}] is missing")
        try:
            check_claim(name, thresholds[name])
        except ValueError as error:
            raise ValueError(f"{folder / 'thresholds.toml'}: {error}") from error
    for name, entry in sabotage.items():
        try:
            check_sabotage(name, entry)
        except ValueError as error:
            raise ValueError(f"{folder / 'sabotage.toml'}: {error}") from error
    return {name: thresholds[name] for name in names}, sabotage


def as_c(thresholds: dict[str, Any], sabotage: dict[str, Any]) -> str:
    """Both files as rows for the C preprocessor."""
    lines = ["/* Written by reports/thresholds.py from thresholds.toml and sabotage.toml. */",
             "#ifndef HYP_CLAIM",
             "#define HYP_CLAIM(number, threshold, tolerance, direction, title, unit, source)",
             "#endif",
             "#ifndef HYP_SABOTEUR", "#define HYP_SABOTEUR(number, name, forced)", "#endif"]
    for name, claim in thresholds.items():
        texts = ", ".join(json.dumps(str(claim[key])) for key in ("title", "unit", "source"))
        lines.append(f"HYP_CLAIM({name[1:]}, {float(claim['threshold'])!r}, "
                     f"{float(claim['tolerance'])!r}, {DIRECTIONS[claim['direction']]}, {texts})")
    for name in thresholds:
        for verdict, saboteurs in sabotage.get(name, {}).items():
            for saboteur in saboteurs:
                lines.append(f"HYP_SABOTEUR({name[1:]}, {json.dumps(saboteur)}, "
                             f"{FORCED[verdict]})")
    return "\n".join([*lines, "#undef HYP_CLAIM", "#undef HYP_SABOTEUR"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="The claims and their thresholds.")
    parser.add_argument("--c", type=pathlib.Path, metavar="FILE",
                        help="where to write the table for the harness; default: nowhere")
    parser.add_argument("--folder", type=pathlib.Path, default=HYPOTHESES,
                        help="where thresholds.toml and sabotage.toml are")
    arguments = parser.parse_args()
    try:
        text = as_c(*load(arguments.folder))
    except ValueError as error:
        print(f"thresholds: {error}", file=sys.stderr)
        return 2
    if arguments.c is None:
        return 0
    arguments.c.parent.mkdir(parents=True, exist_ok=True)
    arguments.c.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
