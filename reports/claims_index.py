"""The index of all claims: what each says, where its attacks are, how many saboteurs it has."""

import pathlib

from . import beyond, markdown, thresholds, words

FOLDER = thresholds.HYPOTHESES
HEADINGS = ("", "claim", "survives if", "attacks", "saboteurs")


def attack_files(name: str, plugin: str, folder: pathlib.Path = FOLDER) -> list[pathlib.Path]:
    """The files that attack a claim: h05_*.c or h05/*.c, beyond/worker/w1_*.c."""
    if plugin:
        patterns = [f"beyond/{plugin}/{name.lower()}_*.c"]
    else:
        patterns = [f"h{int(name[1:]):02}_*.c", f"h{int(name[1:]):02}/*.c"]
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))
            if not path.stem.endswith(("_test", "_scene"))]


def row(name: str, claim: dict[str, object], saboteurs: int) -> str:
    files = [path.relative_to(FOLDER).as_posix()
             for path in attack_files(name, str(claim.get("plugin", "")))]
    attacks = ", ".join(f"[{path.rpartition('/')[2]}]({path})" for path in files)
    limit = f"{words.DIRECTIONS[str(claim['direction'])]} {claim['threshold']:g} {claim['unit']}"
    return (f"| {name} | {markdown.escape(str(claim['title']))} | {limit} | "
            f"{attacks or 'no attack yet'} | {saboteurs} |")


def block() -> str:
    claims, sabotage = thresholds.load()
    rows = [row(name, claim, sum(map(len, thresholds.forced(sabotage.get(name, {})).values())))
            for name, claim in claims.items()]
    rows += [row(name, claim, sum(len(claim.get(verdict, [])) for verdict in thresholds.FORCED))
             for name, claim in beyond.load().items()]
    return "\n".join([f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|", *rows])
