"""The documentation: its links lead somewhere, and its commands are commands.

Every command in a block of code of the pages is run here, or stands below with where it is run
instead; each option of a command is one that the command's --help names.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import doc_site
import manual
from contents import BUILD, ROOT
import trial

TOLLENS = BUILD / "tollens"
SHOWN = re.compile(r"\s*((?:build/)?tollens [a-z]+(?!:)\b.*|ci/[a-z_]+\b.*)$")
# Makes evidence/today, which commands of RUN read.
FIRST = "build/tollens run H1 H3 --sabotage --out evidence/today"
# Commands and the exit code that they end with.
RUN = {
    "build/tollens explain H3": 0,
    "build/tollens run H3 --under copy_flip_bit": 1,
    "build/tollens run --filter 'H3/small_*'": 3,
    "build/tollens doctor": 0,
    "build/tollens soft -- python train.py": 0,
    "build/tollens gate evidence/today --baseline evidence/yesterday": 0,
    "build/tollens compare evidence/yesterday evidence/today --open": 0,
    "build/tollens report evidence/today --open": 0,
    "build/tollens explain W1": 0,
    "build/tollens explain S2": 0,
    "build/tollens explain P1": 0,
}
ELSEWHERE = {
    "ci/check": "the caller of this test",
    "ci/falsify": "ci/fresh",
    "ci/setup": "ci/fresh",
    "ci/package": "the step packages",
    "ci/bundle": "ci/gpu_test.py",
    "ci/compare": "the step compare",
    "build/tollens merge fleet/task-* --out fleet/merged": "ci/fleet/fleet_test.py",
    "build/tollens merge /shared/fleet/task-* --out /shared/fleet/merged":
        "ci/fleet/fleet_test.py",
    "ci/fuzz": "the step fuzz",
    "ci/mutate": "by hand, for it takes hours",
    "build/tollens run H4 --repeat 20": "repeats_test.c, fewer times",
    "build/tollens run H4 --under launch_delay_us=3": "the step launch-cost",
    "build/tollens run H2 --limits": "limits_program_test.c",
    "build/tollens run H1 W1 --sabotage": "the steps claims and decoding",
    "build/tollens run W1 W2 W3 W4 --sabotage": "the step decoding",
    "build/tollens run S1 S2 --sabotage": "the step claims",
    "build/tollens run Q1 Q2 Q3 --sabotage": "the step claims",
    "build/tollens run Q1 --sabotage": "the step claims",
    "build/tollens run P1 --sabotage": "the step peers",
    "build/tollens run P1 P2 --full --seeds 1": "ci/gpu, the part peers",
    "build/tollens soft --devices 2 --check memory,init,sync,stream -- python3 "
    "runtime/driver/torch/torch_use_test.py": "the step torch",
    "build/tollens soft -- ./program": "the step cudart",
    "tollens run --plugin sums.so --sabotage": "the step plugin",
    "tollens run --plugin bug.so": "the step plugin",
    **{f"tollens replay snapshot.pickle{options}": "test-harness, trace_formats" for options in (
        "", " --profile all", " --profile tight --limit 25769803776 --out replay")},
}


def commands_of(text: str) -> list[str]:
    """The lines of blocks of code that are commands of this repository, without their comments."""
    found, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            for part in re.sub(r"\s+#.*", "", line).split(" && "):
                match = SHOWN.match(part)
                if match:
                    found.append(match[1].strip())
    return found


class Site(trial.Trial):
    def commands(self) -> list[str]:
        doc_site.stage(self.folder / "docs")
        found = set()
        for page in (self.folder / "docs").rglob("*.md"):
            found |= set(commands_of(page.read_text()))
        return sorted(found)

    def furnish(self) -> dict[str, str]:
        """A folder in which the commands can be typed as they stand."""
        (self.folder / "build").symlink_to(BUILD)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/tollens").symlink_to(TOLLENS)
        (self.folder / "bin/python").symlink_to(sys.executable)
        self.write("train.py", "import ctypes\n"
                   "assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0\n")
        return {"TOLLENS_DEVICE": "soft", "TOLLENS_SEED": "1", "BROWSER": "true %s",
                "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def test_every_command_is_run_or_named(self) -> None:
        commands = self.commands()
        self.assertGreater(len(commands), 25)
        unknown = [one for one in commands if not {one, one.split()[0]} & {*RUN, *ELSEWHERE}
                   and not one.startswith(("ci/install", "ci/lane"))]
        self.assertEqual(unknown, [])
        self.assertEqual([one for one in RUN if one not in commands], [], "no longer shown")

    def test_options_are_those_of_help(self) -> None:
        commands, _ = manual.commands_of(TOLLENS)
        known = {one.name: {*one.options, *commands[manual.EVERY].options}
                 for one in commands.values()}
        for shown in self.commands():
            words = shlex.split(shown)
            if words[0].endswith("tollens"):
                own = words[:words.index("--")] if "--" in words else words
                name = " ".join(own[1:3]) if own[1] == "model" else own[1]
                self.assertIn(name, known, shown)
                for word in own:
                    if word.startswith("-"):
                        self.assertIn(word.split("=")[0], known[name], shown)
            else:
                text = self.expect(0, "", ROOT / words[0], "--help", cwd=ROOT)
                for word in words[1:]:
                    if word.startswith("--"):
                        self.assertIn(word, text, shown)

    def test_commands_do_what_the_pages_say(self) -> None:
        environment = self.furnish()
        for shown, code in {FIRST: 0, **RUN}.items():
            done = subprocess.run(["sh", "-c", shown], cwd=self.folder,
                                  env={**os.environ, **environment}, text=True, check=False,
                                  capture_output=True)
            self.assertEqual(done.returncode, code, f"{shown}\n{done.stdout}{done.stderr}")
            if shown == FIRST:
                shutil.copytree(self.folder / "evidence/today",
                                self.folder / "evidence/yesterday", dirs_exist_ok=True)

    def test_errors_of_the_faq_are_errors_of_the_programs(self) -> None:
        texts = [(ROOT / name).read_text(encoding="utf-8", errors="replace")
                 for name in ("ci/setup", *(name for top in ("runtime", "hypotheses", "reports")
                                            for name in doc_site.tracked(top)))
                 if name == "ci/setup" or name.endswith((".c", ".h", ".def", ".py"))]
        # Adjacent string literals are one string, in C and in Python.
        said = re.sub(r'["\']\s*\n\s*f?["\']', "", "\n".join(texts))
        faq = (ROOT / "ci/FAQ.md").read_text(encoding="utf-8")
        errors = re.findall(r"(?m)^### `(.*)`$", faq)
        self.assertGreater(len(errors), 6)
        for error in errors:
            for part in filter(None, map(str.strip, error.split("…"))):
                self.assertIn(part, said, error)

    def test_links_lead_somewhere(self) -> None:
        try:
            doc_site.mkdocs()
        except (doc_site.Unmade, OSError) as error:
            self.skipTest(f"there is no MkDocs: {error}")
        pages, wrong = doc_site.make(self.folder / "out", self.folder / "docs",
                                     "\n[a](nowhere.md) [b](ci/GATE.md#nowhere)\n")
        self.assertEqual(len(wrong), 2, wrong)  # the two that are planted
        self.assertTrue(all("nowhere" in line for line in wrong), wrong)
        self.assertGreater(pages, 30)
        text = (self.folder / "out/api/index.html").read_text()
        for name in ("tol_module_load", "tol_pool_create", "TOL_OUT_OF_DEVICE_MEMORY"):
            self.assertTrue(name in text, name)
        claims = (self.folder / "out/claims/index.html").read_text()
        self.assertTrue("copy_flip_bit" in claims and "H13" in claims)


if __name__ == "__main__":
    unittest.main()
