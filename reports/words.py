"""The text that the Markdown and the HTML page share."""

import datetime
import re
from typing import Any

from .evidence import Claim, Evidence, Saboteur, Series, shown_name
from .drawing.figure import with_unit

DIRECTIONS = {"at_most": "at most", "below": "below", "above": "above"}
PARTS = (("claim", "Claim"), ("prediction", "Prediction"), ("falsified_if", "Falsified if"),
         ("method", "Method"), ("control", "Control"), ("confounders", "Confounders"))
SIGNS = {"survived": "✓", "falsified": "✗", "inconclusive": "?", "not_tested": "–"}
SOFT_NOTE = ("The soft device executes the kernels on the CPU. Its verdicts are about correctness; "
             "its times say nothing about a GPU.")
READING = ("Survived: the attacks found no violation; this is not a proof. Falsified: an attack "
           "found a counterexample, or the interval of the effect is beyond the threshold. "
           "Inconclusive: the measurement could not decide. Severity: the share of deliberate "
           "faults (saboteurs) that the attacks detected. Detection limit: the smallest fault of "
           "a kind that they detected.")
# What evidence writes for the outcome of a comparison or an attack, for a reader.
OUTCOMES = {"holds": "within threshold", "falls": "beyond threshold", "never_ran": "not run"}


def verdict(claim: Claim) -> str:
    return str(claim.result["verdict"]).replace("_", " ")


def singular(unit: str) -> str:
    """The unit after the number 1: "violation"; "us" and "GB/s" have no plural and stay."""
    if len(unit) < 4 or not re.search(r"[a-rt-z]s$", unit):
        return unit
    return unit[:-2] if re.search(r".(ch|sh|x|ss)es$", unit) else unit[:-1]


def unit_of(value: float, unit: str) -> str:
    return singular(unit) if f"{value:.4g}" == "1" else unit


def counted(count: int, what: str) -> str:
    """"1 attack", "2 attacks"."""
    return f"{count} {unit_of(count, what)}"


def effect(claim: Claim) -> str:
    result = claim.result
    if result["effect"] is None:
        return ""
    low, high = result.get("low"), result.get("high")
    interval = f" ({low:.4g} to {high:.4g})" if low is not None and high is not None else ""
    label = f", {result['label']}" if result.get("label") else ""
    unit = unit_of(result["effect"], result["unit"])
    return f"{result['effect']:.4g} {unit}{interval}{label}"


def survives(claim: Claim) -> str:
    result = claim.result
    unit = unit_of(result["threshold"], result["unit"])
    return f"{DIRECTIONS[result['direction']]} {result['threshold']:.4g} {unit}"


def severity(claim: Claim) -> str:
    of = claim.result["severity"]
    if of is None:
        return ""
    share = 100 * of["caught"] / of["of"] if of["of"] else 0
    untold = f", {of['untold']} undecided" if of.get("untold") else ""
    return f"{share:.0f} % ({of['caught']} of {of['of']}{untold})"


def samples(claim: Claim) -> str:
    result = claim.result
    if not result["samples"]:
        return ""
    processes = result.get("processes") or 1
    more = f" in {processes} processes" if processes > 1 else ""
    if result.get("seeds", 1) > 1:
        more = f", {result['seeds']} seeds"
    return f"{result['samples']}{more}"


def headline(evidence: Evidence) -> str:
    return ", ".join(f"{evidence.count(name)} {name.replace('_', ' ')}"
                     for name in ("survived", "falsified", "inconclusive", "not_tested"))


def is_soft(evidence: Evidence) -> bool:
    return evidence.results["device"]["kind"] == "soft"


def commit(evidence: Evidence) -> str:
    text = evidence.results.get("commit") or ""
    if not text:
        return "unknown commit"
    changed = evidence.machine.get("dirty") or evidence.results.get("dirty")
    return f"commit {text[:12]}" + (" with local changes" if changed else "")


def when(evidence: Evidence) -> str:
    begin = evidence.run.get("begin_s")
    if not begin:
        return ""
    time = datetime.datetime.fromtimestamp(begin, datetime.timezone.utc)
    return time.strftime("%Y-%m-%d %H:%M UTC")


def day(evidence: Evidence) -> str:
    return when(evidence)[:10]


def seeds(evidence: Evidence) -> str:
    first, count = evidence.run["seed"], evidence.run.get("seeds", 1)
    return f"seeds {first} to {first + count - 1}" if count > 1 else f"seed {first}"


def where(evidence: Evidence) -> str:
    """The run in a line."""
    parts = [f"{evidence.results['mode'].capitalize()} run on {evidence.results['device']['name']}",
             commit(evidence), when(evidence), seeds(evidence)]
    return ", ".join(part for part in parts if part)


def warnings(evidence: Evidence) -> list[str]:
    """What a reader must know before believing a verdict."""
    found = [SOFT_NOTE] if is_soft(evidence) else []
    if evidence.results.get("under"):
        found.append(f"The whole run had the fault {evidence.results['under']} injected: its "
                     "verdicts are not about the runtime.")
    if evidence.run.get("filter"):
        found.append(f"Only the attacks {evidence.run['filter']} ran.")
    if not evidence.run.get("sabotage"):
        found.append("No saboteurs ran, so the severity of the attacks is unknown.")
    return found


def reproduce(evidence: Evidence) -> str:
    """The command that repeats the run."""
    words = str(evidence.run["command"]).split()
    words = words[words.index("run") + 1:] if "run" in words else []
    if "--out" in words:
        at = words.index("--out")
        del words[at:at + 2]
    words = [word for word in words if word != "--sabotage" and not word.startswith("--out=")]
    if "--seed" not in words and evidence.run["seed"] != 1:
        words += ["--seed", str(evidence.run["seed"])]
    checkout = evidence.results.get("commit") or ""
    begin = f"git checkout {checkout[:12]} && " if checkout else ""
    device = "TOLLENS_DEVICE=soft " if is_soft(evidence) else ""
    return f"{begin}{device}ci/falsify {' '.join(words)}".rstrip()


def machine_rows(evidence: Evidence) -> list[tuple[str, str]]:
    machine, run = evidence.machine, evidence.run
    device: dict[str, Any] = machine["device"]
    host: dict[str, Any] = machine["host"]
    version = machine["driver"]["version"]
    clocks = ""
    if device.get("multiprocessors") and device.get("clock_khz"):
        clocks = (f", {counted(device['multiprocessors'], 'multiprocessors')}, "
                  f"{device['clock_khz'] / 1000:.0f} MHz")
    listed = "all match the run's manifest" if evidence.has_manifest else \
        "consistent with each other; without a manifest, a missing file could go unnoticed"
    return [
        ("device", f"{device['name']} ({device['kind']}), compute capability "
                   f"{device['compute_capability'] // 10}.{device['compute_capability'] % 10}, "
                   f"{device['memory_bytes'] / 2**30:.1f} GiB{clocks}"),
        ("driver", f"supports CUDA up to {version // 1000}.{version % 1000 // 10}"),
        ("host", f"{host['processor']}, {counted(host['processors'], 'processors')}, "
                 f"{host['system']}, "
                 f"{host['kernel']}"),
        ("source", commit(evidence)),
        ("compiler", machine["compiler"]),
        ("command", run["command"]),
        ("run", f"{when(evidence) or 'unknown time'}, {evidence.results['mode']}, "
                f"{seeds(evidence)}, {run['duration_s']:.1f} s, exit code {run['exit_code']}"),
        ("files", listed),
    ]


def series_row(series: Series) -> tuple[str, ...]:
    histogram = series.histogram
    return (series.name, series.attack, str(histogram.total), str(series.processes),
            *(with_unit(histogram.percentile(percent)) for percent in (50, 90, 99, 99.9)),
            with_unit(histogram.maximum))


def interval(found: dict[str, Any]) -> str:
    """A median with its interval; an unknown end is a question mark."""
    low, high = ("?" if found[end] is None else f"{found[end]:.4g}" for end in ("low", "high"))
    median = found["median"]
    return "" if median is None else f"{median:.4g} ({low} to {high})"


def effect_row(compared: dict[str, Any]) -> tuple[str, ...]:
    def ns(key: str) -> str:
        return "" if compared[key] is None else with_unit(compared[key])

    said = "recorded only" if compared["recorded_only"] else (
        compared["code"] or OUTCOMES.get(compared["decision"], compared["decision"]))
    return (compared["name"], str(compared["process"]), said.replace("_", " "),
            str(compared["blocks"]), interval(compared["effect"]), interval(compared["control"]),
            ns("baseline_ns"), ns("subject_ns"))


def measure_row(measure: dict[str, Any]) -> tuple[str, ...]:
    value = measure["value"]
    use = "recorded only" if measure["recorded_only"] else "verdict"
    return (measure["name"], measure["attack"], use, "" if value is None else f"{value:.4g}")


def saboteur_row(saboteur: Saboteur) -> tuple[str, ...]:
    """The verdict a saboteur must cause, the verdict observed, and the attacks' findings."""
    seen = counted(saboteur.violations, "violations") if saboteur.violations else ""
    if saboteur.fallen:
        names = saboteur.fallen[:3] + ["…"] * (len(saboteur.fallen) > 3)
        seen += ("; " if seen else "") + "beyond threshold: " + ", ".join(names)
    out = saboteur.verdict or ("detected" if seen else "not detected")
    first = saboteur.examples[0] if saboteur.examples else saboteur.reason
    return (saboteur.name, saboteur.must, out.replace("_", " "), seen, first[:300])


SABOTEUR_HEADINGS = ("saboteur", "expected", "observed", "detected by", "first finding")
MEASURE_HEADINGS = ("measurement", "attack", "use", "value")
EFFECT_HEADINGS = ("comparison", "process", "outcome", "blocks", "effect (A/B)", "control (A/A)",
                   "baseline", "subject")
SERIES_HEADINGS = ("series", "attack", "calls", "processes", "p50", "p90", "p99", "p99.9", "max")
ATTACK_HEADINGS = ("attack", "outcome", "samples", "violations", "seconds")
CLAIM_HEADINGS = ("", "claim", "verdict", "effect", "survives if", "severity", "samples", "reason")
TREND_HEADING = "since the baseline"


def attack_row(attack: dict[str, Any]) -> tuple[str, ...]:
    return (shown_name(attack), OUTCOMES.get(attack["ending"], attack["ending"]),
            str(attack["samples"]), str(attack["violations"]), f"{attack['duration_s']:.2f}")


def claim_row(claim: Claim) -> tuple[str, ...]:
    return (claim.id, claim.result["title"], verdict(claim), effect(claim), survives(claim),
            severity(claim), samples(claim), claim.result["reason"] or "")
