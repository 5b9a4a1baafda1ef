# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests play: the kubelet's messages, written by protobuf's own library, and the cluster's API. The messages are
declared here once more, from what Kubernetes and KubeVirt publish, so that a wrong number in wire.py is found."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PUBLISHED = """
package pluginregistration
PluginInfo string type 1, string name 2, string endpoint 3, repeated string supported_versions 4
RegistrationStatus bool plugin_registered 1, string error 2
RegistrationStatusResponse
InfoRequest

package k8s.io.kubelet.pkg.apis.dra.v1
Claim string namespace 1, string uid 2, string name 3
NodePrepareResourcesRequest repeated Claim claims 1
Device repeated string request_names 1, string pool_name 2, string device_name 3, repeated string cdi_device_ids 4
NodePrepareResourceResponse repeated Device devices 1, string error 2
NodePrepareResourcesResponse map NodePrepareResourceResponse claims 1
NodeUnprepareResourcesRequest repeated Claim claims 1
NodeUnprepareResourceResponse string error 1
NodeUnprepareResourcesResponse map NodeUnprepareResourceResponse claims 1

package v1beta1
Empty
DevicePluginOptions bool pre_start_required 1, bool get_preferred_allocation_available 2
RegisterRequest string version 1, string endpoint 2, string resource_name 3, DevicePluginOptions options 4
NUMANode int64 ID 1
TopologyInfo repeated NUMANode nodes 1
Device string ID 1, string health 2, TopologyInfo topology 3
ListAndWatchResponse repeated Device devices 1
ContainerAllocateRequest repeated string devices_ids 1
AllocateRequest repeated ContainerAllocateRequest container_requests 1
Mount string container_path 1, string host_path 2, bool read_only 3
DeviceSpec string container_path 1, string host_path 2, string permissions 3
CDIDevice string name 1
ContainerAllocateResponse map string envs 1, repeated Mount mounts 2, repeated DeviceSpec devices 3, map string annotations 4, repeated CDIDevice cdi_devices 5
AllocateResponse repeated ContainerAllocateResponse container_responses 1

package kubevirt.hooks.plugins.v1alpha1
SidecarContext string invocation_context 1
MutateDomainRequest string domain_type 1, bytes domain 2, bytes vmi 3, SidecarContext sidecar_context 4
MutateDomainResponse bytes domain 1
"""

F = descriptor_pb2.FieldDescriptorProto
SCALARS = {"string": F.TYPE_STRING, "bytes": F.TYPE_BYTES, "bool": F.TYPE_BOOL, "int64": F.TYPE_INT64}


def add_field(message, package, words):
    """One field: [repeated | map] TYPE NAME NUMBER. A map is from strings."""
    label = words.pop(0) if words[0] in ("repeated", "map") else ""
    kind, name, number = words
    field = message.field.add(name=name, number=int(number), label=F.LABEL_REPEATED if label else F.LABEL_OPTIONAL)
    if label == "map":
        entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        add_field(entry, package, ["string", "key", "1"])
        add_field(entry, package, [kind, "value", "2"])
        field.type, field.type_name = F.TYPE_MESSAGE, f".{package}.{message.name}.{entry.name}"
    elif kind in SCALARS:
        field.type = SCALARS[kind]
    else:
        field.type, field.type_name = F.TYPE_MESSAGE, f".{package}.{kind}"


def build():
    pool, found = descriptor_pool.DescriptorPool(), {}
    for part in PUBLISHED.strip().split("\n\n"):
        lines = part.splitlines()
        package = lines[0].split()[1]
        file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        for line in lines[1:]:
            name, _, fields = line.partition(" ")
            message = file.message_type.add(name=name)
            for field in fields.split(", ") if fields else []:
                add_field(message, package, field.split())
        pool.Add(file)
        for message in file.message_type:
            found[f"{package}.{message.name}"] = f"{package}.{message.name}"
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(name)) for name in found}


MESSAGES = build()
DRA = "k8s.io.kubelet.pkg.apis.dra.v1"


def dra(name):
    return MESSAGES[f"{DRA}.{name}"]


def new_claim(uid, name, node="node-1", device="soft-0", consumed=None, config=None, **more):
    """A claim as the scheduler leaves it."""
    result = {"request": "gpu", "driver": "gpu.qcuda.example", "pool": node, "device": device, **more}
    if consumed is not None:
        result.update(consumedCapacity=consumed, shareID=uid)
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"namespace": "default", "name": name, "uid": uid},
            "status": {"allocation": {"devices": {"results": [result], "config": config or []}}}}


class Api:
    """The cluster's API, as much of it as the driver uses."""

    def __init__(self):
        self.claims, self.slices, self.down, self.instead, self.writes = {}, {}, False, None, 0

    def add(self, claim):
        self.claims[claim["metadata"]["name"]] = claim

    def answer(self, method, path, body):
        """The status and the body."""
        if self.instead is not None:
            return self.instead
        if self.down:
            return 503, b"{}"
        m = re.fullmatch("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/([a-z0-9.-]+)", path)
        if m and method == "GET":
            found = self.claims.get(m[1])
        elif path == "/api/v1/nodes/node-1":
            found = {"metadata": {"name": "node-1", "uid": "the-node"}}
        elif path.startswith("/apis/resource.k8s.io/v1/resourceslices"):
            found = self.slice(method, path.rpartition("/")[2], body)
        else:
            found = None
        return (404, b"{}") if found is None else (200, json.dumps(found).encode())

    def slice(self, method, name, body):
        if method == "GET":
            return self.slices.get(name)
        body = json.loads(body)
        self.writes += 1
        for device in body["spec"]["devices"]:
            # The API writes quantities in its own way.
            for c in device["capacity"].values():
                c["value"] = re.sub("^([0-9]+)Mi$", lambda m: f"{int(m[1]) // 1024}Gi" if int(m[1]) % 1024 == 0 else m[0],
                                    c["value"])
        self.slices[body["metadata"]["name"]] = body
        return body

    def serve(self):
        """Returns the address."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                size = int(self.headers.get("Content-Length") or 0)
                if self.headers["Authorization"] != "Bearer of-the-test":
                    status, body = 401, b"{}"
                else:
                    status, body = api.answer(self.command, self.path, self.rfile.read(size))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", body.decode())
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PUT = do_GET

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"
