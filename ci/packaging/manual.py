"""Writes man pages and completions for bash, zsh and fish, all from `tollens --help`.

    python3 ci/packaging/manual.py FOLDER

FOLDER gets share/man/man1, share/bash-completion/completions, share/zsh/site-functions and
share/fish/vendor_completions.d, as they are installed below a prefix.
"""

import pathlib
import sys
import time

import help_text
from contents import BUILD, commit_time, version
from help_text import Command, Manual, Option

SHORT = "attacks claims about CUDA runtimes, and runs CUDA programs without a GPU"


def roff(text: str) -> str:
    """Text that groff prints as it is: its hyphens are those that can be searched for."""
    for plain, escaped in (("\\", "\\e"), ("-", "\\-"), ("^", "\\(ha"), ("~", "\\(ti"),
                           ("`", "\\(ga"), ("'", "\\(aq")):
        text = text.replace(plain, escaped)
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def head(name: str, short: str, day: str) -> str:
    return (f'.TH {name.upper()} 1 "{day}" "tollens {version()}" "User Commands"\n'
            f".nh\n.ad l\n.SH NAME\n{roff(name)} \\- {roff(short)}\n")


def options_of(options: list[Option]) -> str:
    return "".join(f".TP\n.B {roff(one.usage)}\n{roff(one.text)}\n" for one in options)


def paragraph(text: str) -> str:
    if text.startswith("    "):
        return f".PP\n.nf\n.RS\n{roff(text)}\n.RE\n.fi\n"
    return f".PP\n{roff(' '.join(text.split()))}\n"


def behind(manual: Manual, others: str) -> str:
    return (f".SH EXIT STATUS\n{roff(manual.exit_codes)}\n.SH ENVIRONMENT\n"
            f"{roff(manual.environment)}\n.SH SEE ALSO\n{others}\n")


def page_name(command: Command) -> str:
    return "tollens-" + command.name.replace(" ", "-")


def command_page(manual: Manual, command: Command, day: str) -> str:
    text = head(page_name(command), command.text.split("; see ")[0], day)
    text += f".SH SYNOPSIS\n.B tollens {roff(command.usage)}\n"
    if command.prose:
        text += ".SH DESCRIPTION\n" + "".join(map(paragraph, command.prose))
    own = command.name in help_text.OWN_HELP
    text += ".SH OPTIONS\n" + options_of(command.options + ([] if own else manual.every))
    if own:  # it says its exit codes itself
        return text + ".SH NOTES\n" + "".join(map(paragraph, command.behind)) + \
            ".SH SEE ALSO\n.BR tollens (1)\n"
    return text + behind(manual, ".BR tollens (1)")


def whole_page(manual: Manual, day: str) -> str:
    text = head("tollens", SHORT, day) + ".SH SYNOPSIS\n.B tollens COMMAND\n[options]\n"
    text += ".SH COMMANDS\n"
    text += options_of([Option(one.usage, one.text) for one in manual.commands])
    text += ".SH OPTIONS\nOf every command:\n" + options_of(manual.every)
    names = ",\n".join(f".BR {roff(page_name(one))} (1)" for one in manual.commands)
    return text + behind(manual, names)


def words_of(manual: Manual) -> dict[str, list[str]]:
    """What may follow each command: options, and words of a second kind such as model's info."""
    found: dict[str, list[str]] = {}
    for command in manual.commands:
        first, _, second = command.name.partition(" ")
        words = found.setdefault(first, [])
        words += [word for word in [second, *command.option_names] if word and word not in words]
    for words in found.values():
        every = [option.names[0] for option in manual.every]
        words += [word for word in [*every, "--help"] if word not in words]
    return found


def bash(manual: Manual) -> str:
    words = words_of(manual)
    cases = "".join(f"    {name}) words='{' '.join(those)}' ;;\n" for name, those in words.items())
    return f"""# Completion of tollens for bash; written from tollens --help.
_tollens() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} command=${{COMP_WORDS[1]}} words
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W '{' '.join([*words, 'help'])}' -- "$word")
        return
    fi
    case $command in
{cases}    esac
    case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    *) [ "$command" != model ] || [ "$COMP_CWORD" != 2 ] ||
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word") ;;
    esac
}}
complete -o bashdefault -o default -F _tollens tollens
"""


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def first_text(manual: Manual, name: str) -> str:
    return next(one.text for one in manual.commands if one.name.split()[0] == name)


def zsh(manual: Manual) -> str:
    words = words_of(manual)
    commands = "\n".join(f"        {quoted(name + ':' + first_text(manual, name))}"
                         for name in words)
    cases = "".join(f"    {name}) words=({' '.join(those)}) ;;\n" for name, those in words.items())
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
{cases.replace(" words=(", " options=(")}    esac
    if [[ $PREFIX == -* || ( $words[2] == model && CURRENT == 3 ) ]]; then
        compadd -a options
    else
        _files
    fi
}}
_tollens "$@"
"""


def fish(manual: Manual) -> str:
    lines = ["# Completion of tollens for fish; written from tollens --help."]
    for name in words_of(manual):
        lines.append("complete -c tollens -n __fish_use_subcommand -a " +
                     f"{name} -d {quoted(first_text(manual, name))}")
    for command in manual.commands:
        first, _, second = command.name.partition(" ")
        when = f"-n '__fish_seen_subcommand_from {second or first}'"
        if second:
            lines.append(f"complete -c tollens -n '__fish_seen_subcommand_from {first}' -a "
                         f"{second} -d {quoted(command.text)}")
        texts = {name: one.text for one in [*command.options, *manual.every] for name in one.names}
        for name in dict.fromkeys([*command.option_names, *texts]):
            kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            lines.append(f"complete -c tollens {when} {kind} -d {quoted(texts.get(name, ''))}")
    return "\n".join(lines) + "\n"


def write(folder: pathlib.Path) -> list[pathlib.Path]:
    """All of it. Returns the files."""
    manual = help_text.read(BUILD / "tollens")
    day = time.strftime("%Y-%m-%d", time.gmtime(commit_time()))
    share = folder / "share"
    texts = {share / "man/man1/tollens.1": whole_page(manual, day),
             share / "bash-completion/completions/tollens": bash(manual),
             share / "zsh/site-functions/_tollens": zsh(manual),
             share / "fish/vendor_completions.d/tollens.fish": fish(manual)}
    for command in manual.commands:
        path = share / f"man/man1/{page_name(command)}.1"
        texts[path] = command_page(manual, command, day)
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted(texts)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print(f"manual: {len(write(pathlib.Path(sys.argv[1])))} files")
