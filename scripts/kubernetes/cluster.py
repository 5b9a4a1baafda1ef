# SPDX-License-Identifier: GPL-2.0-or-later
"""What is asked of the cluster's API: claims are read, and the slice that names this node's devices is written."""

import json
import os
import ssl
import urllib.error
import urllib.request

from claims import DRIVER, MEMORY_MIN, quantity
from wire import Refused

GROUP = "/apis/resource.k8s.io/v1"
ANSWER_MAX = 4 << 20


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another server must not get the token."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


class Gone(Refused):
    """There is no such object."""


class Cluster:
    def __init__(self, url, token, ca):
        if not url.startswith("https://") and not url.startswith("http://127.0.0.1:"):
            raise Refused(f"{url}: the token goes there, so it must be https")
        self.url, self.token = url.rstrip("/"), token
        handlers = [NoRedirect(), urllib.request.ProxyHandler({})]
        if url.startswith("https://"):
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca)))
        self.opener = urllib.request.build_opener(*handlers)

    def request(self, method, path, body=None):
        req = urllib.request.Request(self.url + path, method=method)
        req.add_header("Accept", "application/json")
        if body is not None:
            req.data = json.dumps(body).encode()
            req.add_header("Content-Type", "application/json")
        try:
            # The token is read each time, because it changes every hour.
            with open(self.token, encoding="ascii") as f:
                req.add_unredirected_header("Authorization", "Bearer " + f.read().strip())
            with self.opener.open(req, timeout=10) as answer:
                text = answer.read(ANSWER_MAX + 1)
        except urllib.error.HTTPError as e:
            with e:
                if e.code == 404:
                    raise Gone(f"{path}: there is no such object") from None
                raise Refused(f"{method} {path}: {e.code} {e.reason}") from None
        except (OSError, ValueError) as e:
            raise Refused(f"{method} {path}: {e}") from None
        if len(text) > ANSWER_MAX:
            raise Refused(f"{method} {path}: the answer is too long")
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Refused(f"{method} {path}: the answer is no object")
        return found

    def claim(self, namespace, name, uid):
        """The claim, if it is still the one with this uid."""
        claim = self.request("GET", f"{GROUP}/namespaces/{namespace}/resourceclaims/{name}")
        parts = [claim.get("metadata"), claim.get("status") or {}]
        parts.append(isinstance(parts[1], dict) and parts[1].get("allocation") or {})
        if not all(isinstance(p, dict) for p in parts):
            raise Refused(f"{namespace}/{name}: the answer is no claim")
        if parts[0].get("uid") != uid:
            raise Gone(f"{namespace}/{name}: another claim has this name now")
        return claim

    # -- the slice --

    def publish(self, node, devices, settings, options):
        """Sees to it that the slice of this node says what the node has. Returns whether it had to be written."""
        name = f"{node}-{DRIVER}"
        spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [describe(d, settings, options) for d in devices.values()]}
        try:
            there = self.request("GET", f"{GROUP}/resourceslices/{name}")
        except Gone:
            owner = self.request("GET", f"/api/v1/nodes/{node}")
            self.request("POST", f"{GROUP}/resourceslices", {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec, "metadata": {
                    "name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node,
                                                       "uid": owner["metadata"]["uid"]}]}})
            return True
        old = there.get("spec") or {}
        # A cluster without consumable capacity drops what it does not know. Writing it again would change nothing.
        shares = any(d.get("allowMultipleAllocations") for d in old.get("devices") or [])
        spec["pool"]["generation"] = (old.get("pool") or {}).get("generation", 1)
        if says(old, spec) or not shares and says(old, without_sharing(spec)):
            return False
        spec["pool"]["generation"] += 1
        there["spec"] = spec
        self.request("PUT", f"{GROUP}/resourceslices/{name}", there)
        return True


def says(old, new):
    """Does the cluster's object say what ours says? It writes quantities in its own way, and adds fields."""
    if isinstance(new, dict):
        return isinstance(old, dict) and all(k in old and says(old[k], v) for k, v in new.items())
    if isinstance(new, list):
        return isinstance(old, list) and len(old) == len(new) and all(says(o, n) for o, n in zip(old, new))
    if old == new:
        return True
    try:
        return quantity(old) == quantity(new)
    except Refused:
        return False


def without_sharing(spec):
    devices = [{**d, "capacity": {k: {"value": v["value"]} for k, v in d["capacity"].items()}} for d in spec["devices"]]
    for d in devices:
        del d["allowMultipleAllocations"]
    return {**spec, "devices": devices}


def mebibytes(n):
    return f"{n >> 20}Mi"


def describe(device, settings, options):
    """A device of the slice. The compute of a device can only be given away where qcu-device can keep a limit of it."""
    share = max(MEMORY_MIN, device["memory"] // settings.vms >> 20 << 20)
    capacity = {
        "memory": {"value": mebibytes(device["memory"]), "requestPolicy": {
            "default": mebibytes(share), "validRange": {"min": mebibytes(MEMORY_MIN), "step": "1Mi"}}},
        "vms": {"value": str(settings.vms), "requestPolicy": {"default": "1", "validValues": ["1"]}},
    }
    if "--max" in options:
        capacity["compute"] = {"value": "100", "requestPolicy": {
            "default": str(max(1, 100 // settings.vms)), "validRange": {"min": "1", "step": "1"}}}
    attributes = {"kind": {"string": device["kind"]}}
    for key in ("model", "uuid"):
        if device.get(key):
            attributes[key] = {"string": device[key]}
    return {"name": device["name"], "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": True}


def in_cluster():
    """The address and the files that each pod with a service account has."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", f"{folder}/token", f"{folder}/ca.crt"
