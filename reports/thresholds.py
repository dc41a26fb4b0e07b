#!/usr/bin/env python3
"""The claims and their thresholds, read from hypotheses/thresholds.toml and sabotage.toml.

This is the one reader of those files: the build calls it to make the harness's table, and the
reports import it.

    python3 reports/thresholds.py --c build/generated/claims.def
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
CLAIMS = [f"H{number}" for number in range(1, 14)]
DIRECTIONS = {"at_most": "HYP_AT_MOST", "below": "HYP_BELOW", "above": "HYP_ABOVE"}
KEYS = ("title", "threshold", "unit", "direction", "source")


def check_claim(name: str, claim: dict[str, Any]) -> None:
    for key in KEYS:
        if key not in claim:
            raise ValueError(f"[{name}] has no {key}")
    threshold, direction = claim["threshold"], claim["direction"]
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
        raise ValueError(f"[{name}] threshold is no number: {threshold!r}")
    if not math.isfinite(threshold) or threshold < 0:
        raise ValueError(f"[{name}] threshold must be finite and not negative: {threshold}")
    if direction not in DIRECTIONS:
        raise ValueError(f"[{name}] direction must be one of {', '.join(DIRECTIONS)}: {direction!r}")


def load(folder: pathlib.Path = HYPOTHESES) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both files, checked. ValueError says what is wrong and where."""
    tables = []
    for file in ("thresholds.toml", "sabotage.toml"):
        try:
            with open(folder / file, "rb") as stream:
                tables.append(tomllib.load(stream))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{folder / file}: {error}") from error
        for name in tables[-1]:
            if name not in CLAIMS:
                raise ValueError(f"{folder / file}: [{name}] is none of H1 to H13")
    thresholds, sabotage = tables
    for name in CLAIMS:
        if name not in thresholds:
            raise ValueError(f"{folder / 'thresholds.toml'}: [{name}] is missing")
        try:
            check_claim(name, thresholds[name])
        except ValueError as error:
            raise ValueError(f"{folder / 'thresholds.toml'}: {error}") from error
    for name, entry in sabotage.items():
        if entry.get("verdict") != "falsified" or not entry.get("saboteurs"):
            raise ValueError(f"{folder / 'sabotage.toml'}: [{name}] needs saboteurs, and the verdict "
                             "\"falsified\"")
    return thresholds, sabotage


def as_c(thresholds: dict[str, Any], sabotage: dict[str, Any]) -> str:
    """The same as rows for the C preprocessor."""
    lines = ["/* Written by reports/thresholds.py from thresholds.toml and sabotage.toml. */",
             "#ifndef HYP_CLAIM",
             "#define HYP_CLAIM(number, threshold, direction, title, unit, source)", "#endif",
             "#ifndef HYP_SABOTEUR", "#define HYP_SABOTEUR(number, name)", "#endif"]
    for name in CLAIMS:
        claim = thresholds[name]
        texts = ", ".join(json.dumps(str(claim[key])) for key in ("title", "unit", "source"))
        lines.append(f"HYP_CLAIM({name[1:]}, {float(claim['threshold'])!r}, "
                     f"{DIRECTIONS[claim['direction']]}, {texts})")
    for name in CLAIMS:
        for saboteur in sabotage.get(name, {}).get("saboteurs", []):
            lines.append(f"HYP_SABOTEUR({name[1:]}, {json.dumps(str(saboteur))})")
    return "\n".join([*lines, "#undef HYP_CLAIM", "#undef HYP_SABOTEUR"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="The claims and their thresholds.")
    parser.add_argument("--c", type=pathlib.Path, required=True, metavar="FILE",
                        help="where to write the table for the harness")
    parser.add_argument("--folder", type=pathlib.Path, default=HYPOTHESES,
                        help="where thresholds.toml and sabotage.toml are")
    arguments = parser.parse_args()
    try:
        text = as_c(*load(arguments.folder))
    except ValueError as error:
        print(f"thresholds: {error}", file=sys.stderr)
        return 2
    arguments.c.parent.mkdir(parents=True, exist_ok=True)
    arguments.c.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
