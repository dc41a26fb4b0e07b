"""Tollens from Python: the evidence of runs, and what the soft device found in a program.

    import tollens

    run = tollens.open_run("evidence/20261122T222000Z-18550")   # or an archive of one
    print(run.device, run.mode, run.count("survived"))
    for claim in run.claims:
        print(claim.id, claim.verdict, claim.effect, claim.unit)
        for series in claim.series:
            print(" ", series.name, series.histogram.percentile(99), "ns")

    for finding in tollens.read_findings("report.jsonl"):       # of tollens soft --report FILE
        print(finding.kind, finding.place)

All that is read is checked first: ValueError says in one sentence which file is wrong, and how.
Nothing changes what is returned, and any thread may read it. `pytest --tollens`
runs tests on the soft device (tollens.pytest_plugin); the command is `tollens`, or `python -m
tollens`.
"""

from .findings import Finding, read_findings
from .program import Missing, program_path, soft_library_path, version
from .evidence_run import Claim, Histogram, Run, Saboteur, Series, Verdict, open_run

__all__ = ["Claim", "Finding", "Histogram", "Missing", "Run", "Saboteur", "Series", "Verdict",
           "open_run", "program_path", "read_findings", "soft_library_path", "version"]
__version__ = version()
