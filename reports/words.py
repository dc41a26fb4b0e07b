"""The words that the Markdown and the HTML page share."""

from typing import Any

from reports.evidence import Claim, Evidence, Series
from reports.plots import with_unit

DIRECTIONS = {"at_most": "at most", "below": "below", "above": "above"}
PARTS = (("claim", "Claim"), ("prediction", "Prediction"), ("falsified_if", "Falsified if"),
         ("method", "Method"), ("control", "Control"), ("confounders", "Confounders"))


def verdict(claim: Claim) -> str:
    return str(claim.result["verdict"]).replace("_", " ")


def effect(claim: Claim) -> str:
    result = claim.result
    if result["effect"] is None:
        return ""
    low, high = result.get("low"), result.get("high")
    interval = f" ({low:.4g} to {high:.4g})" if low is not None and high is not None else ""
    label = f", {result['label']}" if result.get("label") else ""
    return (f"{result['effect']:.4g} {result['unit']}{interval} in {result['samples']} samples"
            f"{label}")


def survives(claim: Claim) -> str:
    result = claim.result
    return f"{DIRECTIONS[result['direction']]} {result['threshold']:.4g} {result['unit']}"


def severity(claim: Claim) -> str:
    of = claim.result["severity"]
    if of is None:
        return ""
    return f"{100 * of['caught'] / of['of']:.0f} % ({of['caught']} of {of['of']})"


def headline(evidence: Evidence) -> str:
    return ", ".join(f"{evidence.count(name)} {name.replace('_', ' ')}"
                     for name in ("survived", "falsified", "inconclusive", "not_tested"))


def is_soft(evidence: Evidence) -> bool:
    return evidence.results["device"]["kind"] == "soft"


SOFT_NOTE = ("The soft device executes the kernels on the CPU. Its verdicts speak of correctness; "
             "its times say nothing about a GPU.")


def machine_rows(evidence: Evidence) -> list[tuple[str, str]]:
    machine, run = evidence.machine, evidence.run
    device: dict[str, Any] = machine["device"]
    host: dict[str, Any] = machine["host"]
    version = machine["driver"]["version"]
    commit = evidence.results.get("commit") or "unknown"
    return [
        ("device", f"{device['name']} ({device['kind']}), compute capability "
                   f"{device['compute_capability'] // 10}.{device['compute_capability'] % 10}, "
                   f"{device['memory_bytes'] / 2**30:.1f} GiB"),
        ("driver", f"for CUDA {version // 1000}.{version % 1000 // 10} and older"),
        ("host", f"{host['processor']}, {host['processors']} processors, {host['system']}, "
                 f"{host['kernel']}"),
        ("sources", commit[:12] + (" with changes" if machine["dirty"] else "")),
        ("compiler", machine["compiler"]),
        ("command", run["command"]),
        ("run", f"{evidence.results['mode']}, seed {run['seed']}, {run['duration_s']:.1f} s, "
                f"exit code {run['exit_code']}"),
    ]


def series_row(series: Series) -> tuple[str, ...]:
    histogram = series.histogram
    return (series.name, series.attack, str(histogram.total),
            *(with_unit(histogram.percentile(percent)) for percent in (50, 90, 99)),
            with_unit(histogram.maximum))


def interval(found: dict[str, Any]) -> str:
    """A median with its interval; an end that is not known is a question mark."""
    low, high = ("?" if found[end] is None else f"{found[end]:.4g}" for end in ("low", "high"))
    median = found["median"]
    return "" if median is None else f"{median:.4g} ({low} to {high})"


def effect_row(compared: dict[str, Any]) -> tuple[str, ...]:
    def ns(key: str) -> str:
        return "" if compared[key] is None else with_unit(compared[key])

    said = "recorded" if compared["recorded_only"] else compared["code"] or compared["decision"]
    return (compared["name"], str(compared["process"]), said, str(compared["blocks"]),
            interval(compared["effect"]), interval(compared["control"]), ns("baseline_ns"),
            ns("subject_ns"))


def measure_row(measure: dict[str, Any]) -> tuple[str, ...]:
    value = measure["value"]
    return (measure["name"], measure["attack"], "recorded" if measure["recorded_only"] else "",
            "" if value is None else f"{value:.4g}")


MEASURE_HEADINGS = ("measured", "attack", "", "value")
EFFECT_HEADINGS = ("compared", "process", "", "blocks", "effect", "control", "baseline", "subject")
SERIES_HEADINGS = ("series", "attack", "calls", "p50", "p90", "p99", "max")
CLAIM_HEADINGS = ("", "claim", "verdict", "effect", "survives", "severity")


def claim_row(claim: Claim) -> tuple[str, ...]:
    return (claim.id, claim.result["title"], verdict(claim), effect(claim), survives(claim),
            severity(claim))
