"""Renders a report of evidence folders or archives, or compares or merges them.

    python3 -m reports EVIDENCE...                 a report of all of them, on one page
    python3 -m reports compare OLD NEW...          what changed between runs
    python3 -m reports merge EVIDENCE... --out DIR  one verdict over many machines
"""

import argparse
import dataclasses
import pathlib
import sys

from . import answer, appendix, archive, compare, evidence, history, markdown, opened, page, raw
from .drawing import drawn


def write_report(options: argparse.Namespace, out: pathlib.Path) -> None:
    folders: list[pathlib.Path] = options.evidence
    runs = [evidence.read(folder) for folder in folders]
    histories = [history.of_run(run, options.baseline, options.history) for run in runs]
    out.mkdir(parents=True, exist_ok=True)
    contexts = []
    for number, (run, past) in enumerate(zip(runs, histories), 1):
        where = run.folder
        if options.unpack:
            where = archive.unpack(where, out / f"evidence{number if len(runs) > 1 else ''}")
        elif where.is_dir() and not archive.is_folder(where):
            where /= archive.NAME
        contexts.append(page.Context(past, raw.of_run(run.files, where, out)))
    html = page.render(runs, appendix.html(runs), contexts)
    (out / "report.html").write_text(html, encoding="utf-8")
    text = markdown.render(runs, appendix.text(runs), histories)
    (out / "report.md").write_text(text, encoding="utf-8")
    if not options.no_png:
        from .drawing import plots  # matplotlib takes a second to load
        for number, run in enumerate(runs, 1):
            prefix = f"run{number}_" if len(runs) > 1 else ""
            plots.draw_all((dataclasses.replace(figure, name=prefix + figure.name)
                            for claim in run.claims for figure in drawn.of_claim(claim).all()),
                           out / "plots")


def command(name: str, words: list[str], prog: str) -> int:
    """report, compare or merge, as the program tollens calls them. Returns the exit code."""
    return answer.exit_code(lambda: chosen(name, words, prog))


def chosen(name: str, words: list[str], prog: str) -> int:
    if name == "compare":
        return compare.main(words, f"{prog} compare")
    if name == "merge":
        from .fleet import merge
        return merge.main(words, f"{prog} merge")
    return main(words, f"{prog} {name}")


def main(words: list[str], prog: str = "reports") -> int:
    if words[:1] in (["compare"], ["merge"]):
        return chosen(words[0], words[1:], prog)
    parser = argparse.ArgumentParser(prog=prog, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=pathlib.Path, nargs="+",
                        help="a folder that tollens run wrote, or an archive of reports.pack")
    parser.add_argument("--out", type=pathlib.Path,
                        help="where the report goes; default: report/ in the first folder, or "
                             "beside the first archive")
    parser.add_argument("--baseline", type=pathlib.Path, metavar="RUN",
                        help="an earlier run of the same kind: the report says what changed since")
    parser.add_argument("--history", type=pathlib.Path, metavar="FOLDER",
                        help="a folder of runs: the report draws each effect over those of the "
                             "same kind, and the last of them is the baseline")
    parser.add_argument("--unpack", action="store_true",
                        help="write the files of archives beside the report, which then links to "
                             "each; of a folder it links to each anyway")
    opened.add_option(parser)
    answer.add_option(parser)
    parser.add_argument("--no-png", action="store_true",
                        help="do not write the PNG files that report.md shows")
    arguments = parser.parse_args(words)
    first: pathlib.Path = arguments.evidence[0]
    out: pathlib.Path = arguments.out or (first.parent if first.is_file() else first) / "report"
    try:
        write_report(arguments, out)
    except (ValueError, OSError) as error:
        return answer.complain("report", arguments, str(error))
    except (KeyError, TypeError, AttributeError) as error:
        return answer.complain("report", arguments, f"the evidence lacks {error}")
    if arguments.json:
        answer.write("report", {"page": str(out / "report.html"),
                                "markdown": str(out / "report.md")})
    else:
        print(f"report: {out / 'report.html'}")
    if arguments.open:
        opened.open_page(out / "report.html")
    return 0


if __name__ == "__main__":
    sys.exit(answer.exit_code(lambda: main(sys.argv[1:])))
