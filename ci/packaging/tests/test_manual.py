"""The man pages and completions that were installed, against what the installed program says."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import tollens

PREFIX = pathlib.Path(sys.prefix)
TOLLENS = tollens.program_path()
PAGES = PREFIX / "share/man/man1"
BASH = PREFIX / "share/bash-completion/completions/tollens"
OTHERS = {"zsh": PREFIX / "share/zsh/site-functions/_tollens",
          "fish": PREFIX / "share/fish/vendor_completions.d/tollens.fish"}
OWN = ("soft", "model run", "model tokenize", "model bench")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def says(*words: str) -> str:
    return subprocess.run([str(TOLLENS), *words, "--help"], text=True, capture_output=True,
                          check=True).stdout


def help_options() -> dict[str, set[str]]:
    """The options of each command, read line by line from --help."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in says().split("every command")[0].splitlines():
        command = re.match(r"  ([a-z]+(?: (?:info|run|tokenize|bench))?)( |$)", line)
        if command:
            name = command[1]
            found[name] = set(OPTION.findall(line.strip().partition("  ")[0]))
        elif line.startswith("      --"):
            found[name] |= set(OPTION.findall(re.split(r" {2,}", line.strip())[0].split("=")[0]))
    for name in OWN:
        found[name] = {word for line in says(*name.split()).splitlines()
                       if re.match("  -|usage", line)
                       for word in OPTION.findall(re.split(r" {2,}", line.strip())[0])
                       if word not in ("--", "-th")}
    return {name: {word for word in words if word != "-th"} for name, words in found.items()}


def read_as_shown(page: pathlib.Path) -> str:
    """A page as a reader sees it, its lines joined."""
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(page)],
                          capture_output=True, text=True, check=True)
    assert done.stderr == "", f"{page.name}: {done.stderr}"
    return " ".join(done.stdout.split())


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_each_command_has_a_page_with_all_that_its_help_says() -> None:
    options = help_options()
    assert {page.name for page in PAGES.glob("tollens*")} == {
        "tollens.1", *(f"tollens-{name.replace(' ', '-')}.1" for name in options)}
    assert len(options) >= 12 and sum(map(len, options.values())) > 40
    for name, words in options.items():
        shown = read_as_shown(PAGES / f"tollens-{name.replace(' ', '-')}.1")
        assert re.search(rf"NAME tollens-{name.replace(' ', '-')} - \w+ \w+", shown), name
        for word in words:
            assert re.search(rf"(?<![\w-]){word}(?![\w-])", shown), f"{name}: {word}"
    # And what each of them means, in the words of --help.
    for page, words in (("tollens", ()), *((f"tollens-{name.replace(' ', '-')}", name.split())
                                           for name in OWN)):
        shown = read_as_shown(PAGES / f"{page}.1")
        for line in says(*words).splitlines()[1:]:
            own = any(line.startswith(f"  {name} ") for name in OWN)
            assert own or " ".join(line.split()) in shown, line


def complete(*words: str) -> set[str]:
    script = f"source {BASH}; COMP_WORDS=(tollens {' '.join(words)}); COMP_CWORD={len(words)}; " \
             "_tollens; printf '%s\\n' \"${COMPREPLY[@]}\""
    return set(subprocess.run(["bash", "-c", script], text=True, capture_output=True,
                              check=True).stdout.split())


def test_bash_completes_commands_and_their_options() -> None:
    options = help_options()
    assert complete("''") == {*(name.split()[0] for name in options), "help"}
    assert complete("so") == {"soft"} and complete("soft", "--err") == {"--error-exitcode"}
    assert complete("model", "b") == {"bench"}
    for name, words in options.items():
        offered = complete(name.split()[0], "-")
        assert words <= offered, f"{name}: {words - offered}"
        alike = {word for other, those in options.items()
                 if other.split()[0] == name.split()[0] for word in those}
        assert offered == alike | {"--plugin", "--json", "--help"}, name


@pytest.mark.parametrize("shell", OTHERS)
def test_other_shells_read_their_completion(shell: str) -> None:
    text = OTHERS[shell].read_text()
    for name, words in help_options().items():
        assert name.split()[-1] in text
        for word in words:
            assert re.search(rf"(?<![\w-]){word}(?![\w-])" if shell == "zsh" else
                             rf"-[ls] {word.lstrip('-')} ", text), f"{name}: {word}"
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(OTHERS[shell])], check=True)
