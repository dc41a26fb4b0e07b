"""What tests of the programs here share: a folder that is deleted after the test, stand-ins for
programs, and commands whose exit code must be right."""

import os
import pathlib
import subprocess
import tempfile
import unittest


class Trial(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name).resolve()

    def write(self, name: str, text: str, mode: int = 0o644) -> pathlib.Path:
        """A file of the folder. A program has a first line that says what runs it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode | (0o111 if text.startswith("#!") else 0))
        return path

    def run_it(self, *words: str | pathlib.Path, cwd: pathlib.Path | None = None,
               env: dict[str, str] | None = None) -> tuple[int, str]:
        """The exit code of a command in the folder, and all that it printed."""
        done = subprocess.run(list(map(str, words)), cwd=cwd or self.folder, text=True, check=False,
                              env={**os.environ, **(env or {})}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def expect(self, code: int, said: str, *words: str | pathlib.Path,
               cwd: pathlib.Path | None = None, env: dict[str, str] | None = None) -> str:
        """Runs a command that must end with the code and print what is said. Returns all of it."""
        found, text = self.run_it(*words, cwd=cwd, env=env)
        self.assertEqual(found, code, f"{words}: {text}")
        self.assertIn(said, text)
        return text
