"""The claims as a ReFrame test, for sites that test their GPU nodes with ReFrame.

    export TOLLENS_BUNDLE=/shared/bundle
    reframe -C site.py -c ci/fleet/reframe_tollens.py -r
    reframe -C site.py -c ci/fleet/reframe_tollens.py -r --distribute=all    # on each node

A partition or environment with the feature "gpu" or "soft" runs it: on a GPU, or on the soft device
where there is none. The parameter `gpu` is the number of the device; numbers that the partition's
`devices` do not have are skipped. The sanity of the test are the verdicts, its performance are the
effects, with the claims' thresholds as reference. The evidence of a test that passed is in its
output folder, and of one that failed in its stage folder; `tollens merge` makes one report of many:

    tollens merge $(find output stage -name run.json -printf '%h\\n') --out merged

Variables, set with -S: `claims` names the claims, all by default; `options` are more options of
tollens run; `gpus` is how many devices there may be.
"""

import json
import os
import pathlib
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (parameter, performance_function, run_after, run_before,
                                   sanity_function, variable)

COUNTS = ("violations", "driver allocations")  # units of claims that are no measurements
PASSING = ("survived", "not_tested")


def evidence_of(stage: str) -> dict[str, Any]:
    """results.json of the run in a stage folder; without claims where there is none."""
    path = pathlib.Path(stage) / "evidence/results.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"claims": []}
    return found


@rfm.simple_test
class TollensClaims(rfm.RunOnlyRegressionTest):
    """Attacks the claims on one device."""

    descr = "Tollens: try to falsify claims about CUDA"
    maintainers = ["tollens"]
    valid_systems = ["+gpu", "+soft"]
    valid_prog_environs = ["*"]
    time_limit = "1h"
    num_tasks = 1
    keep_files = ["evidence"]
    # GPUs of a node have numbers; a partition's own number of devices limits them.
    gpu = parameter(range(int(os.environ.get("TOLLENS_GPUS", "8"))), loggable=True)
    claims = variable(str, value="")
    options = variable(str, value="--sabotage")

    @run_after("setup")
    def choose_device(self) -> None:
        partition = self.current_partition
        self.on_gpu = "gpu" in partition.features
        devices = sum(device.num_devices for device in partition.devices
                      if device.type == "gpu") if self.on_gpu else 1
        self.skip_if(self.gpu >= max(1, devices), f"there is no device {self.gpu}")
        if self.on_gpu and devices == 0:
            self.extra_resources = {"gpu": {"num_gpus_per_node": 1}}

    @run_before("run")
    def write_command(self) -> None:
        bundle = os.environ.get("TOLLENS_BUNDLE", "")
        self.skip_if(not os.access(f"{bundle}/tollens", os.X_OK),
                     f"TOLLENS_BUNDLE must be a bundle; it is '{bundle}'")
        self.executable = f"{bundle}/tollens"
        device = [f"--device=cuda:{self.gpu}", "--require-gpu"] if self.on_gpu else \
            ["--device=soft"]
        self.executable_opts = ["run", *self.claims.replace(",", " ").split(), *device,
                                *self.options.split(), "--out=evidence"]
        self.prerun_cmds = ["export TOLLENS_NODE=${SLURMD_NODENAME:-$(hostname)}"]
        # The claims' verdicts decide; the program's exit code is among what is looked at.
        self.postrun_cmds = ["[ ! -f evidence/summary.md ] || cat evidence/summary.md"]

    @sanity_function
    def verdicts(self) -> Any:
        rows = evidence_of(self.stagedir)["claims"]
        bad = [f"{row['id']} {row['verdict']}: {row['reason']}" for row in rows
               if row["verdict"] not in PASSING or (self.on_gpu and
                                                    row["verdict"] == "not_tested")]
        run = pathlib.Path(self.stagedir) / "evidence/run.json"
        code = json.loads(run.read_text())["exit_code"] if run.exists() else 2
        return sn.all([
            sn.assert_true(any(row["verdict"] != "not_tested" for row in rows),
                           "no claim was tested: see the output"),
            sn.assert_false(bad, "; ".join(bad)[:1000]),
            sn.assert_eq(code, 0, "tollens run ended with {0}")])

    @run_before("performance")
    def effects(self) -> None:
        """A figure for each claim that measures something; its threshold is the reference."""
        limits: dict[str, tuple[Any, ...]] = {}
        self.perf_variables = {}
        for row in evidence_of(self.stagedir)["claims"]:
            if row["effect"] is None or row["unit"] in COUNTS:
                continue
            name, unit = f"{row['id']}_effect", row["unit"].replace(" ", "_")
            self.perf_variables[name] = sn.make_performance_function(
                sn.defer(row["effect"]), unit)
            ends = (0, None) if row["direction"] == "above" else (None, 0)
            limits[name] = (row["threshold"], *ends, unit)
        self.reference = {"*": limits}
