"""The language of build.ninja, for configure.py."""


class Ninja:
    """A .ninja file as it is being written, line by line."""

    def __init__(self, comment: str) -> None:
        self.lines = [f"# {comment}"]

    def variable(self, name: str, value: str) -> None:
        self.lines.append(f"{name} = {value}".rstrip())

    def rule(self, name: str, command: str, **more: str) -> None:
        self.lines.append(f"\nrule {name}\n  command = {command}")
        self.lines += [f"  {key} = {value}" for key, value in more.items()]

    def compile_rule(self, name: str, flags: str) -> None:
        self.rule(name, f"$cc -MMD -MF $out.d {flags} -c $in -o $out", depfile="$out.d",
                  deps="gcc", description="CC $out")

    def build(self, outputs: str, rule: str, inputs: str = "", needs: str = "", after: str = "",
              **variables: str) -> str:
        line = f"build {outputs}: {rule} {inputs}".rstrip()
        line += f" | {needs}" if needs else ""
        line += f" || {after}" if after else ""
        self.lines.append(line)
        self.lines += [f"  {key} = {value}" for key, value in variables.items() if value]
        return outputs

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
