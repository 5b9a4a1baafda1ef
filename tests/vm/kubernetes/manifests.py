#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares manifests with the types of Kubernetes' own Python client (PyPI: kubernetes, 34 or later, and PyYAML): every field
exists, and its value has the field's type. KubeVirt's own kinds are left out, because the client does not know them.

usage: manifests.py FILE..."""

import re
import sys

import yaml
from kubernetes.client import models


def check(value, kind, at):
    inner = re.fullmatch(r"(list|dict)(?:\[|\()(?:str, )?(.*)[\])]", kind, re.I)
    if inner:
        assert isinstance(value, {"list": list, "dict": dict}[inner[1].lower()]), f"{at}: {value!r} is no {kind}"
        for key, v in value.items() if isinstance(value, dict) else enumerate(value):
            check(v, inner[2], f"{at}.{key}")
    elif hasattr(models, kind):
        model = getattr(models, kind)
        fields = {model.attribute_map[k]: t for k, t in model.openapi_types.items()}
        for key, v in value.items():
            assert key in fields, f"{at}: {kind} has no field {key}"
            check(v, fields[key], f"{at}.{key}")
    else:
        want = {"str": str, "int": int, "bool": bool}.get(kind, object)
        assert isinstance(value, want), f"{at}: {value!r} is no {kind}"


def main():
    count = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            for doc in yaml.safe_load_all(f):
                if "kubevirt.io" not in doc["apiVersion"]:
                    check(doc, "V1" + doc["kind"], f"{path}: {doc['kind']}")
                    count += 1
    print(f"{count} objects have the right fields")


main()
