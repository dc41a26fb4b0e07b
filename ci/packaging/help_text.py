"""Reads what `tollens --help` prints: the one source of man pages and completions.

A command stands two columns in, an option of it six, and what they mean in the column behind or in
the lines below. Commands with a --help of their own have prose, examples four columns in, and
options two columns in.
"""

import pathlib
import re
from dataclasses import dataclass, field

import target

OWN_HELP = ("soft", "model run", "model bench")
OPTION = re.compile(r"(?<![^\s[])--?[a-z][a-z-]*")


@dataclass
class Option:
    usage: str  # as it is written: "--device D", or several
    text: str

    @property
    def names(self) -> list[str]:
        return OPTION.findall(re.sub(r"=\S+", "", self.usage))


@dataclass
class Command:
    name: str          # such as "run", or "model run"
    usage: str         # with its arguments
    text: str
    options: list[Option] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)     # paragraphs; an example's begin with spaces
    behind: list[str] = field(default_factory=list)    # paragraphs behind the options

    @property
    def option_names(self) -> list[str]:
        """Of its usage and of its options."""
        return list(dict.fromkeys([*OPTION.findall(self.usage),
                                   *(name for option in self.options for name in option.names)]))


@dataclass
class Manual:
    commands: list[Command]
    every: list[Option]  # of every command
    exit_codes: str
    environment: str


def ask(program: pathlib.Path, *words: str) -> str:
    return target.run(program, *words, "--help")


def head_and_text(line: str) -> tuple[str, str]:
    """What stands in front of the column of texts, and the text."""
    head, _, text = line.strip().partition("  ")
    return head, text.strip()


def read_commands(lines: list[str]) -> list[Command]:
    commands: list[Command] = []
    last: Command | Option | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if indent == 2:
            usage, text = head_and_text(line)
            name = " ".join(word for word in usage.split()[:2] if re.fullmatch(r"[a-z]+", word))
            last = Command(name, usage, text)
            commands.append(last)
        elif indent == 6:
            last = Option(*head_and_text(line))
            commands[-1].options.append(last)
        elif last is not None:
            last.text = f"{last.text} {line.strip()}".strip()
    return commands


def add_own_help(command: Command, text: str) -> None:
    """Of a command whose --help says more than its line among the others."""
    usage, _, rest = text.partition("\n")
    command.usage = usage.removeprefix("usage: tollens ")
    command.options = []
    for paragraph in filter(None, re.split(r"\n\s*\n", rest.strip("\n"))):
        lines = paragraph.splitlines()
        if re.match(r"  -", lines[0]):
            for line in lines:
                if re.match(r"  -", line):
                    command.options.append(Option(*head_and_text(line)))
                else:
                    command.options[-1].text += " " + line.strip()
        else:
            (command.behind if command.options else command.prose).append(paragraph)


def read(program: pathlib.Path) -> Manual:
    """Of the program that is built."""
    text = ask(program)
    _, *parts = text.split("\n\n")
    commands = read_commands("\n".join(parts[:-1]).splitlines())
    every = [option_of(command.text) for command in commands if command.name == "every command"]
    commands = [command for command in commands if command.name != "every command"]
    for command in commands:
        if command.name in OWN_HELP:
            add_own_help(command, ask(program, *command.name.split()))
    codes, _, environment = parts[-1].partition("\nenvironment: ")
    return Manual(commands, every,
                  " ".join(codes.removeprefix("exit codes: ").split()),
                  " ".join(environment.split()))


def option_of(text: str) -> Option:
    """ "--plugin PATH.so adds ..." as the option and its text: a value begins as a name does."""
    words = text.split()
    taken = 2 if words[1][0].isupper() else 1
    return Option(" ".join(words[:taken]), " ".join(words[taken:]))
