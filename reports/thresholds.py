#!/usr/bin/env python3
"""The claims and their thresholds, read from hypotheses/thresholds.toml and sabotage.toml.

Nothing else reads those files: the build calls this program to write the harness's table, and the
reports import it. The claims of plugins are in another file, which reports/beyond.py reads.

    python3 reports/thresholds.py                                   checks both files
    python3 reports/thresholds.py --c build/generated/claims.def    and writes the harness's table
"""

import argparse
import fnmatch
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
STEPS_MAX, LADDERS_MAX = 8, 4  # HYP_LADDER_STEPS_MAX of ladder.h, HYP_CLAIM_LADDERS_MAX of claim.h
TEXTS = ("title", "unit", "source")
KEYS = ("title", "threshold", "tolerance", "unit", "direction", "source")


def forced(entry: dict[str, Any]) -> dict[str, Any]:
    """A claim's saboteurs by the verdict that each must force."""
    return {key: names for key, names in entry.items() if key not in ("limits", "first")}


def check_table(name: str, table: Any) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{name} is not a table: {table!r}")


def check_text(name: str, key: str, text: Any) -> None:
    """It becomes a C string and a line of a report."""
    if not isinstance(text, str) or not text.isprintable():
        raise ValueError(f"[{name}] {key} is not a line of printable text: {text!r}")


def check_claim(name: str, claim: dict[str, Any]) -> None:
    check_table(name, claim)
    for key in KEYS:
        if key not in claim:
            raise ValueError(f"[{name}] has no {key}")
    for key in TEXTS:
        check_text(name, key, claim[key])
    for key in ("threshold", "tolerance"):
        number = claim[key]
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(f"[{name}] {key} is not a number: {number!r}")
        if not math.isfinite(number) or number < 0:
            raise ValueError(f"[{name}] {key} must be finite and not negative: {number}")
    if not isinstance(claim.get("alone", False), bool):
        raise ValueError(f"[{name}] alone is neither true nor false: {claim['alone']!r}")
    direction = claim["direction"]
    if direction not in list(DIRECTIONS):
        raise ValueError(f"[{name}] direction must be one of {', '.join(DIRECTIONS)}: "
                         f"{direction!r}")


def check_ladder(name: str, ladder: Any) -> None:
    """A ladder is a fault in several sizes, from gross to fine: "launch_drop_one_in=10,100"."""
    if not isinstance(ladder, str) or not ladder:
        raise ValueError(f"[{name}] limits must be a list of faults with amounts, such as "
                         '"launch_drop_one_in=10,100"')
    check_text(name, "limits", ladder)
    fault, equals, amounts = ladder.partition("=")
    if not equals:
        return
    try:
        steps = [float(amount) for amount in amounts.split(",")]
    except ValueError as error:
        raise ValueError(f"[{name}] the ladder {ladder} has an amount that is no number") from error
    if not all(math.isfinite(step) and step > 0 for step in steps):
        raise ValueError(f"[{name}] the ladder {ladder} has an amount that is not above 0")
    if len(steps) > STEPS_MAX:
        raise ValueError(f"[{name}] the ladder {ladder} has more than {STEPS_MAX} steps")
    order = sorted(set(steps), reverse="_one_in" not in fault)
    if steps != order:
        raise ValueError(f"[{name}] the ladder {ladder} must go from gross to fine")


def check_first(name: str, entry: dict[str, Any]) -> None:
    """Which attacks are tried first under which saboteurs: "packed_*=packed_sequences_*"."""
    texts = entry.get("first", [])
    if not isinstance(texts, list):
        raise ValueError(f"[{name}] first must be a list of saboteurs and attacks")
    for text in texts:
        check_text(name, "first", text)
        saboteurs, equals, attacks = text.partition("=")
        if not (saboteurs and equals and attacks):
            raise ValueError(f"[{name}] first has {text!r}, which is not SABOTEURS=ATTACKS")
        if not any(fnmatch.fnmatchcase(s, saboteurs) for s in entry["falsified"]):
            raise ValueError(f"[{name}] first names no saboteur that must falsify: {saboteurs}")


def check_sabotage(name: str, entry: dict[str, Any]) -> None:
    check_table(name, entry)
    if not entry.get("falsified"):
        raise ValueError(f"[{name}] needs saboteurs under which it must be falsified")
    ladders = entry.get("limits", [])
    if not isinstance(ladders, list) or len(ladders) > LADDERS_MAX:
        raise ValueError(f"[{name}] limits must be a list of at most {LADDERS_MAX} ladders")
    for ladder in ladders:
        check_ladder(name, ladder)
    for key, saboteurs in forced(entry).items():
        if key not in FORCED:
            raise ValueError(f"[{name}] {key} is not a verdict that a saboteur can force; use "
                             f"{', '.join(FORCED)}, limits for faults in several sizes, or first "
                             "for attacks that are tried first")
        if not isinstance(saboteurs, list):
            raise ValueError(f"[{name}] {key} must be a list of names")
        for saboteur in saboteurs:
            check_text(name, key, saboteur)
    if ("not_falsified" in entry) != ("not_survived" in entry):
        raise ValueError(f"[{name}] needs both ends of a borderline pair")
    check_first(name, entry)


def read(path: pathlib.Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error


def load(folder: pathlib.Path = HYPOTHESES) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reads and checks thresholds.toml and sabotage.toml. ValueError says what is wrong and
    where."""
    thresholds, sabotage = (read(folder / file) for file in ("thresholds.toml", "sabotage.toml"))
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


def c_string(text: str) -> str:
    """Printable text in C. ISO C replaces some characters after two question marks (trigraphs)."""
    return json.dumps(text, ensure_ascii=False).replace("??", "?\\?")


def as_c(thresholds: dict[str, Any], sabotage: dict[str, Any]) -> str:
    """thresholds.toml and sabotage.toml as rows for the C preprocessor."""
    lines = ["/* Written by reports/thresholds.py from thresholds.toml and sabotage.toml. */",
             "#ifndef HYP_CLAIM",
             "#define HYP_CLAIM(number, threshold, tolerance, direction, alone, title, unit, "
             "source)",
             "#endif",
             "#ifndef HYP_SABOTEUR", "#define HYP_SABOTEUR(number, name, forced)", "#endif",
             "#ifndef HYP_LADDER", "#define HYP_LADDER(number, text)", "#endif",
             "#ifndef HYP_FIRST", "#define HYP_FIRST(number, saboteurs, attacks)", "#endif"]
    for name, claim in thresholds.items():
        texts = ", ".join(c_string(claim[key]) for key in TEXTS)
        lines.append(f"HYP_CLAIM({name[1:]}, {float(claim['threshold'])!r}, "
                     f"{float(claim['tolerance'])!r}, {DIRECTIONS[claim['direction']]}, "
                     f"{str(claim.get('alone', False)).lower()}, {texts})")
    for name in thresholds:
        for verdict, saboteurs in forced(sabotage.get(name, {})).items():
            for saboteur in saboteurs:
                lines.append(f"HYP_SABOTEUR({name[1:]}, {c_string(saboteur)}, "
                             f"{FORCED[verdict]})")
        for ladder in sabotage.get(name, {}).get("limits", []):
            lines.append(f"HYP_LADDER({name[1:]}, {c_string(ladder)})")
        for text in sabotage.get(name, {}).get("first", []):
            saboteurs, _, attacks = text.partition("=")
            lines.append(f"HYP_FIRST({name[1:]}, {c_string(saboteurs)}, {c_string(attacks)})")
    lines += [f"#undef {name}" for name in ("HYP_CLAIM", "HYP_SABOTEUR", "HYP_LADDER", "HYP_FIRST")]
    return "\n".join(lines) + "\n"


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
    arguments.c.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
