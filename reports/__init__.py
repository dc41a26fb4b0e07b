"""Reports: read evidence and nothing else.

    python3 -m reports EVIDENCE            writes EVIDENCE/report/ (report.md, report.html, plots/)
    python3 reports/thresholds.py --c FILE writes the table of claims for the harness
"""
