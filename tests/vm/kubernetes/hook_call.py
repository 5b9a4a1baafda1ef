#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls the plugin of KubeVirt as virt-launcher does, and prints the domain, or the refusal.

usage: hook_call.py SOCKET TYPE VMI-FILE DOMAIN-FILE"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
# pylint: disable=wrong-import-position
import grpc  # noqa: E402
from played import MESSAGES  # noqa: E402

HOOKS = "kubevirt.hooks.plugins.v1alpha1"


def read(path):
    with open(path, "rb") as f:
        return f.read()


request = MESSAGES[f"{HOOKS}.MutateDomainRequest"](
    domain_type=sys.argv[2], vmi=read(sys.argv[3]), domain=read(sys.argv[4]),
    sidecar_context=MESSAGES[f"{HOOKS}.SidecarContext"](invocation_context="Boot"))
with grpc.insecure_channel(f"unix:{sys.argv[1]}") as channel:
    try:
        data = channel.unary_unary(f"/{HOOKS}.DomainHookService/MutateDomain")(request.SerializeToString(), timeout=60)
    except grpc.RpcError as e:
        sys.exit(f"{e.code().name}: {e.details()}")
sys.stdout.buffer.write(MESSAGES[f"{HOOKS}.MutateDomainResponse"].FromString(data).domain)
