"""The software bill of materials of a release: SPDX 2.3 as JSON.

It lists each file of the release with its SHA-256, the compiler, and the third-party libraries that
the release contains or links statically, each with the version of its Debian package.
"""

import datetime
import functools
import json
import pathlib
import re
import subprocess

from stable_archive import sha256
from contents import BUILD, needed_libraries, output, version

LICENCE = "Apache-2.0"
# Linked into the programs; the others lie beside them.
STATIC = ("libcriterion.a", "libboxfort.a", "libprotobuf-nanopb.a")
NAMELESS = {"downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION"}


def identifier(name: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


@functools.cache
def debian_package(file: str) -> tuple[str, str, str] | None:
    """Name, version and architecture of the package that a file is from."""
    found = subprocess.run(["dpkg", "-S", file], text=True, capture_output=True, check=False)
    if found.returncode != 0:
        return None
    name = found.stdout.split(": ")[0].split(",")[0]
    number, kind = output("dpkg-query", "-W", "-f=${Version} ${Architecture}", name).split()
    return name.split(":")[0], number, kind


def package_of_library(library: str) -> dict:
    found = debian_package(f"*/{library}")
    name, number, kind = found or (library, "", "")
    package = {"name": name, "SPDXID": identifier(f"Library-{name}"), **NAMELESS}
    if found:
        package["versionInfo"] = number
        package["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{number.replace('+', '%2B')}?arch={kind}"}]
    return package


def package_of_file(path: pathlib.Path) -> dict:
    return {"name": path.name, "SPDXID": identifier(f"File-{path.name}"), **NAMELESS,
            "packageFileName": path.name, "versionInfo": version(),
            "licenseDeclared": LICENCE, "supplier": "NOASSERTION",
            "checksums": [{"algorithm": "SHA256", "checksumValue": sha256(path)}]}


def link(one: str, kind: str, other: str) -> dict:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(files: list[pathlib.Path], libraries: list[str], commit: str, when: int,
             compiler: str) -> dict:
    """Of these files; those that hold a program hold the libraries too."""
    moment = datetime.datetime.fromtimestamp(when, datetime.timezone.utc)
    source = {"name": "tollens", "SPDXID": "SPDXRef-Source", **NAMELESS, "versionInfo": version(),
              "licenseConcluded": LICENCE, "licenseDeclared": LICENCE,
              "comment": f"commit {commit}"}
    tool = {"name": "gcc", "SPDXID": "SPDXRef-Compiler", **NAMELESS, "versionInfo": compiler}
    packages = {one["SPDXID"]: one for one in map(package_of_library, libraries)}
    ties = [link("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Source"),
            link("SPDXRef-Compiler", "BUILD_TOOL_OF", "SPDXRef-Source")]
    of_files = [package_of_file(path) for path in files]
    for one in of_files:
        ties.append(link("SPDXRef-DOCUMENT", "DESCRIBES", one["SPDXID"]))
        ties.append(link(one["SPDXID"], "GENERATED_FROM", "SPDXRef-Source"))
        if one["name"].endswith(".whl") or "bundle" in one["name"]:
            ties += [link(one["SPDXID"], "CONTAINS", other) for other in sorted(packages)]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"tollens-{version()}",
            "documentNamespace": f"https://spdx.org/spdxdocs/tollens-{version()}-{commit}",
            "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Tool: tollens-ci-release"]},
            "packages": [source, tool, *of_files,
                         *(packages[name] for name in sorted(packages))],
            "relationships": ties}


def libraries_of(build: pathlib.Path = BUILD) -> list[str]:
    """Of others, in the program or beside it."""
    return sorted({path.name for path in needed_libraries(build / "tollens")} | set(STATIC))


def write(files: list[pathlib.Path], libraries: list[str], commit: str, when: int,
          compiler: str, target: pathlib.Path) -> None:
    text = json.dumps(document(files, libraries, commit, when, compiler), indent=1)
    target.write_text(text + "\n")
