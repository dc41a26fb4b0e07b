"""Writes man pages and completions for bash, zsh and fish, all from `tollens --help`.

    python3 ci/packaging/manual.py FOLDER

FOLDER gets share/man/man1, share/bash-completion/completions, share/zsh/site-functions and
share/fish/vendor_completions.d, as they are installed below a prefix. A page shows the help of its
command as the program prints it. In that help, a command is indented by two columns and an option
of it by six; the commands in OWN_HELP have a --help of their own.
"""

import pathlib
import re
import sys
import time
from dataclasses import dataclass, field

import target
from contents import BUILD, commit_time, version

SHORT = "attacks claims about CUDA runtimes, and runs CUDA programs without a GPU"
OWN_HELP = ("soft", "model run", "model tokenize", "model bench")
EVERY = "every command"
OPTION = re.compile(r"(?<![^\s[])--?[a-z][a-z-]*")
ROFF = str.maketrans({"\\": "\\e", "-": "\\-", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga",
                      "'": "\\(aq"})


@dataclass
class Command:
    name: str  # such as "run", or "model run"
    usage: str  # with its arguments
    short: str  # the first line of its text
    lines: list[str] = field(default_factory=list)  # of --help
    options: dict[str, str] = field(default_factory=dict)  # and the first line of each text

    def read(self, line: str) -> None:
        head, _, text = line.strip().partition("  ")
        for option in OPTION.findall(re.sub(r"=\S+", "", head)):
            self.options[option] = text.strip()


def ask(program: pathlib.Path, *words: str) -> str:
    return target.run(program, *words, "--help")


def commands_of(program: pathlib.Path) -> tuple[dict[str, Command], str]:
    """The commands of the program, and what the end of its help says of all."""
    _, *parts = ask(program).split("\n\n")
    found: dict[str, Command] = {}
    for line in "\n".join(parts[:-1]).splitlines():
        indent = len(line) - len(line.lstrip())
        if indent == 2:
            usage, _, text = line.strip().partition("  ")
            name = " ".join(word for word in usage.split()[:2] if re.fullmatch("[a-z]+", word))
            command = found.setdefault(name, Command(name, usage, text.strip()))
            if name == EVERY:
                command.read(text.strip().replace(" ", "  ", 1))
            command.read(usage)
        elif indent == 6:
            command.read(line)
        elif not command.short:
            command.short = line.strip()
        command.lines.append(line)
    for name in OWN_HELP:
        usage, _, rest = ask(program, *name.split()).partition("\n")
        one = found[name]
        one.usage, one.lines = usage.removeprefix("usage: tollens "), rest.strip("\n").splitlines()
        for line in [usage, *(line for line in one.lines if line.startswith("  -"))]:
            one.read(line)
    return found, parts[-1]


# ---- man pages ---------------------------------------------------------------------------------

def shown(lines: list[str]) -> str:
    """Lines that groff prints as they are: its hyphens are those that can be searched for."""
    text = "".join(f"\\&{line.translate(ROFF)}\n" for line in lines)
    return f".nf\n{text}.fi\n"


def page(name: str, short: str, usage: str, parts: dict[str, list[str]], others: list[str]) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(commit_time()))
    also = ",\n".join(f".BR {other.translate(ROFF)} (1)" for other in others)
    return (f'.TH {name.upper()} 1 "{day}" "tollens {version()}" "User Commands"\n.nh\n.ad l\n'
            f".SH NAME\n{name.translate(ROFF)} \\- {short.translate(ROFF)}\n"
            f".SH SYNOPSIS\n.B tollens {usage.translate(ROFF)}\n"
            + "".join(f".SH {title}\n{shown(lines)}" for title, lines in parts.items())
            + f".SH SEE ALSO\n{also}\n")


def page_name(name: str) -> str:
    return "tollens-" + name.replace(" ", "-")


def pages(commands: dict[str, Command], end: str) -> dict[str, str]:
    own = [command for command in commands.values() if command.name != EVERY]
    lines = [line for command in commands.values() for line in (
        [f"  {command.usage}", f"      {command.short}"] if command.name in OWN_HELP
        else command.lines)]
    made = {"tollens": page("tollens", SHORT, "COMMAND [options]", {
        "COMMANDS": lines, "EXIT STATUS AND ENVIRONMENT": end.splitlines()},
        [page_name(command.name) for command in own])}
    for command in own:
        parts = {"DESCRIPTION": command.lines}
        if command.name not in OWN_HELP:
            parts |= {"OPTIONS OF EVERY COMMAND": commands[EVERY].lines,
                      "EXIT STATUS AND ENVIRONMENT": end.splitlines()}
        name = page_name(command.name)
        made[name] = page(name, command.short.split("; see ")[0], command.usage, parts,
                          ["tollens"])
    return made


# ---- completions -------------------------------------------------------------------------------

def words_of(commands: dict[str, Command]) -> dict[str, dict[str, str]]:
    """What may follow each command, and the text: options, and the second words of model."""
    found: dict[str, dict[str, str]] = {}
    for command in commands.values():
        if command.name != EVERY:
            first, _, second = command.name.partition(" ")
            found.setdefault(first, {}).update(
                ({second: command.short} if second else {}) | command.options)
    for words in found.values():
        words |= {**commands[EVERY].options, "--help": "describe the command"}
    return found


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def bash(words: dict[str, dict[str, str]]) -> str:
    cases = "".join(f"    {name}) words='{' '.join(those)}' ;;\n" for name, those in words.items())
    return f"""# Completion of tollens for bash; written from tollens --help.
_tollens() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words
    COMPREPLY=()
    case ${{COMP_WORDS[1]}} in
{cases}    esac
    [ "$COMP_CWORD" != 1 ] || words='{' '.join([*words, 'help'])}'
    case $COMP_CWORD-${{COMP_WORDS[1]}}-$word in
    1-* | 2-model-* | *-[a-z]*-[-]*) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    esac
}}
complete -o bashdefault -o default -F _tollens tollens
"""


def zsh(words: dict[str, dict[str, str]], texts: dict[str, str]) -> str:
    commands = "\n".join(f"        {quoted(f'{name}:{text}')}" for name, text in texts.items())
    cases = "".join(f"    {name}) options=({' '.join(those)}) ;;\n"
                    for name, those in words.items())
    return f"""#compdef tollens
# Completion of tollens for zsh; written from tollens --help.
_tollens() {{
    local -a commands options
    if (( CURRENT == 2 )); then
        commands=(
{commands}
        )
        _describe command commands
        return
    fi
    case $words[2] in
{cases}    esac
    if [[ $PREFIX == -* || ( $words[2] == model && CURRENT == 3 ) ]]; then
        compadd -a options
    else
        _files
    fi
}}
_tollens "$@"
"""


def fish(words: dict[str, dict[str, str]], texts: dict[str, str]) -> str:
    lines = ["# Completion of tollens for fish; written from tollens --help."]
    for name, options in words.items():
        lines.append("complete -c tollens -n __fish_use_subcommand "
                     f"-a {name} -d {quoted(texts[name])}")
        for option, text in options.items():
            kind = (f"-l {option[2:]}" if option.startswith("--") else
                    f"-s {option[1:]}" if option.startswith("-") else f"-a {option}")
            lines.append(f"complete -c tollens -n '__fish_seen_subcommand_from {name}' {kind} "
                         f"-d {quoted(text)}")
    return "\n".join(lines) + "\n"


def write(folder: pathlib.Path) -> list[pathlib.Path]:
    """All of it. Returns the files."""
    commands, end = commands_of(BUILD / "tollens")
    words = words_of(commands)
    texts = {name: next(one.short for one in commands.values() if one.name.split()[0] == name)
             for name in words}
    made = {f"man/man1/{name}.1": text for name, text in pages(commands, end).items()}
    made |= {"bash-completion/completions/tollens": bash(words),
             "zsh/site-functions/_tollens": zsh(words, texts),
             "fish/vendor_completions.d/tollens.fish": fish(words, texts)}
    for name, text in made.items():
        path = folder / "share" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted(folder / "share" / name for name in made)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print(f"manual: {len(write(pathlib.Path(sys.argv[1])))} files")
