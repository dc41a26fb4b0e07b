"""The rules of build.ninja: what each kind of file is made with."""

from building.libraries import compile_rule
from building.ninja_file import Ninja


def write_rules(n: Ninja) -> None:
    compile_rule(n, "cc", "$cflags")
    n.rule("image", "$python ci/kernel_image.py $out $in $compiler", depfile="$out.d", deps="gcc",
           description="IMAGE $out")
    n.rule("ar", "rm -f $out && ar rcs $out $in", description="AR $out")
    n.rule("so", "$cc -shared $ldflags -o $out $in $libs", description="LINK $out")
    # A bundle has its libraries in lib/. One dollar for ninja, and quotes for the shell.
    n.rule("exe", "$cc $ldflags $program_ldflags -o $out $in $libs '-Wl,-rpath,$$ORIGIN/lib'",
           description="LINK $out")
    n.rule("run", "$runner $in", pool="console", description="RUN $in")
    n.rule("script", "$arguments", pool="console", description="$arguments")
    n.rule("refuse", "ci/must_fail $out $cc $cflags -c $in", description="REFUSED $in")
    n.rule("claims", "$python -m $reader --c $out", description="CLAIMS $out")
    n.rule("configure", "$python configure.py $configure_args", generator="1",
           description="CONFIGURE")
