#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Evaluates the expressions of KubeVirt's plugin and of its policy (scripts/kubevirt/plugin.yaml), and the class's
(scripts/kubernetes/driver.yaml), with cel-python: on machines and pods that do not ask for the device, and on those that do.
Writes the pods as the policy makes them into FOLDER, for manifests.py.

Kubernetes has types for what an expression makes (Object.spec.containers{...}). Here they are plain maps, so a wrong field is
only found by manifests.py.

usage: policy.py FOLDER"""

import copy
import json
import re
import sys

import celpy
import yaml
from celpy.celtypes import MessageType

ASKS = "qcuda.example/device"
MADE = re.compile(r"\b(JSONPatch|Object[.\w]*)\{")


def evaluate(expression, **names):
    """The value as JSON has it. An expression that cannot be evaluated ends the test."""
    flat = MADE.sub(lambda made: made[1].replace(".", "_") + "{", expression)
    env = celpy.Environment(annotations={made[1]: MessageType for made in MADE.finditer(flat)})
    value = env.program(env.compile(flat)).evaluate({name: celpy.json_to_cel(given) for name, given in names.items()})
    return json.loads(json.dumps(value, cls=celpy.CELJSONEncoder))


def documents(path):
    with open(path, encoding="utf-8") as file:
        return {doc["kind"]: doc["spec"] for doc in yaml.safe_load_all(file) if "spec" in doc}


def patched(pod, patch):
    """JSON Patch, of which the policy needs only this: something new at the end of a list."""
    for step in patch:
        assert step["op"] == "add" and step["path"] == "/spec/containers/-", step
        pod["spec"]["containers"].append(step["value"])


def applied(old, new):
    """What server-side apply does with maps, and with lists whose entries have names."""
    for key, value in new.items():
        if isinstance(value, dict):
            applied(old.setdefault(key, {}), value)
        elif isinstance(value, list):
            for entry in value:
                known = [e for e in old.setdefault(key, []) if e["name"] == entry["name"]]
                if known:
                    applied(known[0], entry)
                else:
                    old[key].append(entry)
        else:
            old[key] = value


def main():
    kubevirt = documents("scripts/kubevirt/plugin.yaml")
    policy = kubevirt["MutatingAdmissionPolicy"]
    condition = kubevirt["Plugin"]["condition"]
    (match,) = policy["matchConditions"]
    (selector,) = documents("scripts/kubernetes/driver.yaml")["DeviceClass"]["selectors"]
    for driver, want in (("gpu.nvidia.com", False), ("gpu.qcuda.example", True)):
        assert evaluate(selector["cel"]["expression"], device={"driver": driver}) is want, driver

    # A machine or a pod has no annotations, those of others, or ours.
    for metadata, want in (({}, False), ({"annotations": {"other": "x"}}, False), ({"annotations": {ASKS: "plugin"}}, True)):
        metadata["name"] = "cuda"
        assert evaluate(condition, vmi={"metadata": metadata}) is want, f"the plugin's condition, {metadata}"
        assert evaluate(match["expression"], object={"metadata": metadata}) is want, f"the policy's condition, {metadata}"

    compute = {"name": "compute", "image": "launcher", "resources": {"limits": {"cpu": "1"}}}
    for value, claims in (("plugin", []), ("qcuda-4g", ["qcuda"])):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cuda", "annotations": {ASKS: value}},
               "spec": {"containers": [copy.deepcopy(compute), {"name": "other", "image": "other"}]}}
        for mutation in policy["mutations"]:
            if mutation["patchType"] == "JSONPatch":
                patched(pod, evaluate(mutation["jsonPatch"]["expression"], object=pod))
            else:
                applied(pod, evaluate(mutation["applyConfiguration"]["expression"], object=pod))
        first, other, ours = pod["spec"]["containers"]
        assert (other, first["resources"]["limits"]) == ({"name": "other", "image": "other"}, {"cpu": "1"}), pod
        assert [c["name"] for c in first["resources"].get("claims", [])] == claims, pod
        assert [c["resourceClaimTemplateName"] for c in pod["spec"].get("resourceClaims", [])] == [value] * len(claims), pod
        # KubeVirt looks for the socket where the sidecar's folder is, and demands a subPath.
        (mount,) = ours["volumeMounts"]
        (hook,) = kubevirt["Plugin"]["domainHooks"]
        assert hook["sidecar"]["socketPath"] == mount["mountPath"] + "hook.sock" and mount["subPath"] == "qcuda", pod
        with open(f"{sys.argv[1]}/{value}.yaml", "w", encoding="utf-8") as file:
            yaml.safe_dump(pod, file)
    print("all expressions say what they should")


main()
