# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kubelet and KubeVirt say to a plugin: the messages that are used here, their bytes (protocol
buffers, version 3), and servers on Unix sockets (gRPC). The numbers of the fields are those that Kubernetes
and KubeVirt publish.

A message is a dictionary. Fields that are not described are skipped, as version 3 demands. Bytes that are no
message raise Malformed, whatever they are: tests/vm/kubernetes/wire_fuzz.py."""

import os
import stat

# NAME: {number: (field, kind)}. A kind is string, bytes, bool, int or a message. * before it: a list of them.
# % before it: a map, from strings to them.
MESSAGES = {
    "Empty": {},

    # pluginregistration: the kubelet asks each socket in plugins_registry/ whose it is.
    "PluginInfo": {1: ("type", "string"), 2: ("name", "string"), 3: ("endpoint", "string"),
                   4: ("supported_versions", "*string")},
    "RegistrationStatus": {1: ("plugin_registered", "bool"), 2: ("error", "string")},

    # k8s.io.kubelet.pkg.apis.dra.v1
    "Claim": {1: ("namespace", "string"), 2: ("uid", "string"), 3: ("name", "string")},
    "PrepareRequest": {1: ("claims", "*Claim")},
    "PreparedDevice": {1: ("request_names", "*string"), 2: ("pool_name", "string"), 3: ("device_name", "string"),
                       4: ("cdi_device_ids", "*string")},
    "Prepared": {1: ("devices", "*PreparedDevice"), 2: ("error", "string")},
    "PrepareResponse": {1: ("claims", "%Prepared")},
    "UnprepareRequest": {1: ("claims", "*Claim")},
    "Unprepared": {1: ("error", "string")},
    "UnprepareResponse": {1: ("claims", "%Unprepared")},

    # v1beta1: device plugins
    "PluginOptions": {1: ("pre_start_required", "bool"), 2: ("get_preferred_allocation_available", "bool")},
    "RegisterRequest": {1: ("version", "string"), 2: ("endpoint", "string"), 3: ("resource_name", "string"),
                        4: ("options", "PluginOptions")},
    "Slot": {1: ("ID", "string"), 2: ("health", "string")},
    "SlotList": {1: ("devices", "*Slot")},
    "ContainerRequest": {1: ("devices_ids", "*string")},
    "AllocateRequest": {1: ("container_requests", "*ContainerRequest")},
    "Mount": {1: ("container_path", "string"), 2: ("host_path", "string"), 3: ("read_only", "bool")},
    "ContainerResponse": {1: ("envs", "%string"), 2: ("mounts", "*Mount")},
    "AllocateResponse": {1: ("container_responses", "*ContainerResponse")},

    # kubevirt.hooks.plugins.v1alpha1
    "SidecarContext": {1: ("invocation_context", "string")},
    "MutateDomainRequest": {1: ("domain_type", "string"), 2: ("domain", "bytes"), 3: ("vmi", "bytes"),
                            4: ("sidecar_context", "SidecarContext")},
    "MutateDomainResponse": {1: ("domain", "bytes")},
}

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MESSAGE_MAX = 4 << 20
NO_VALUE = {"string": "", "bytes": b"", "bool": False, "int": 0}


class Malformed(Exception):
    """These bytes are no message."""


class Refused(Exception):
    """A sentence for the caller."""


# ---- bytes ----

def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift >= 70:
            raise Malformed("a number does not end")
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value & (1 << 64) - 1, at


def write_varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_fields(data):
    """The numbers and values of all fields of a message."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, form = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise Malformed(f"there is no field {number}")
        if form == VARINT:
            value, at = read_varint(data, at)
        else:
            if form == LENGTH:
                size, at = read_varint(data, at)
            elif form in (FIXED64, FIXED32):
                size = 8 if form == FIXED64 else 4
            else:
                raise Malformed(f"field {number} has the form {form}")
            if size > len(data) - at:
                raise Malformed(f"field {number} is longer than the message")
            value, at = data[at:at + size], at + size
        yield number, form, value


def read_value(kind, form, value):
    if form != (VARINT if kind in ("bool", "int") else LENGTH):
        raise Malformed(f"a {kind} has the form {form}")
    if kind == "bool":
        return value != 0
    if kind == "int":
        return value - (1 << 64) if value >> 63 else value
    if kind == "bytes":
        return value
    if kind == "string":
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed("a string is no UTF-8") from None
    return decode(kind, value)


def no_value(kind):
    if kind[0] in "*%":
        return [] if kind[0] == "*" else {}
    return NO_VALUE[kind] if kind in NO_VALUE else decode(kind, b"")


def decode(message, data):
    """The message of this name that these bytes say. A field that they do not say has its empty value."""
    fields = MESSAGES[message]
    found = {}
    for number, form, value in read_fields(data):
        if number not in fields:
            continue
        name, kind = fields[number]
        if kind[0] == "*":
            found.setdefault(name, []).append(read_value(kind[1:], form, value))
        elif kind[0] == "%":
            if form != LENGTH:
                raise Malformed(f"a map has the form {form}")
            key, entry = "", no_value(kind[1:])
            for n, f, v in read_fields(value):
                if n == 1:
                    key = read_value("string", f, v)
                elif n == 2:
                    entry = read_value(kind[1:], f, v)
            found.setdefault(name, {})[key] = entry
        else:
            found[name] = read_value(kind, form, value)
    for name, kind in fields.values():
        if name not in found:
            found[name] = no_value(kind)
    return found


def write_field(number, kind, value):
    if kind in ("bool", "int"):
        return write_varint(number << 3 | VARINT) + write_varint(int(value))
    if kind == "string":
        value = value.encode("utf-8")
    elif kind != "bytes":
        value = encode(kind, value)
    return write_varint(number << 3 | LENGTH) + write_varint(len(value)) + value


def encode(message, values):
    """The bytes of a message. Fields that are left out, or empty, are not written."""
    out = []
    names = {name: (number, kind) for number, (name, kind) in MESSAGES[message].items()}
    for name, value in values.items():
        number, kind = names[name]
        if kind[0] == "*":
            out += [write_field(number, kind[1:], v) for v in value]
        elif kind[0] == "%":
            for key, v in value.items():
                entry = write_field(1, "string", key) + write_field(2, kind[1:], v)
                out.append(write_varint(number << 3 | LENGTH) + write_varint(len(entry)) + entry)
        elif value or kind not in NO_VALUE:
            out.append(write_field(number, kind, value))
    return b"".join(out)


# ---- servers and calls ----

def only_ours(folder):
    """Whoever can make a file in the folder could take the place of a socket. So only its owner may, and that
    is the user of this process, or root."""
    st = os.stat(folder)
    if not stat.S_ISDIR(st.st_mode) or st.st_uid not in (0, os.geteuid()) or st.st_mode & 0o022:
        raise Refused(f"{folder}: others than its owner may write there, or its owner is another user")


def handler_of(request, response, function, many):
    """A handler of gRPC. The bytes are read here, so that a malformed message is refused with a sentence."""
    import grpc  # pylint: disable=import-outside-toplevel

    def call(data, context):
        try:
            return function(decode(request, data))
        except Malformed as e:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"qcuda: no {request}: {e}")
        except Refused as e:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"qcuda: {e}")

    def one(data, context):
        return encode(response, call(data, context))

    def several(data, context):
        for values in call(data, context)(context.is_active):
            yield encode(response, values)

    if many:
        return grpc.unary_stream_rpc_method_handler(several)
    return grpc.unary_unary_rpc_method_handler(one)


class Server:
    """Serves the methods of one service, {name: (request, response, function)}, on a Unix socket. A method whose name
    begins with * answers with a stream: its function returns a function that makes the answers. Only the user of this
    process and root may connect; with shared, whoever reaches the folder and is in the same group."""

    def __init__(self, path, services, shared=False):
        import grpc  # pylint: disable=import-outside-toplevel
        from concurrent import futures  # pylint: disable=import-outside-toplevel
        if len(os.fsencode(path)) > 107:
            raise Refused(f"{path}: the path of a socket can have 107 bytes")
        if not shared:
            only_ours(os.path.dirname(path))
        self.path = path
        self.server = grpc.server(futures.ThreadPoolExecutor(8), maximum_concurrent_rpcs=32,
                                  options=[("grpc.max_receive_message_length", MESSAGE_MAX)])
        for service, methods in services.items():
            self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {
                name.lstrip("*"): handler_of(*what, name[0] == "*") for name, what in methods.items()}),))
        if os.path.lexists(path):
            os.unlink(path)
        try:
            bound = self.server.add_insecure_port(f"unix:{path}")
        except RuntimeError:
            bound = 0
        if not bound:
            raise Refused(f"{path}: cannot listen there")
        os.chmod(path, 0o660 if shared else 0o600)
        self.inode = os.stat(path).st_ino
        self.server.start()

    def is_lost(self):
        """Has somebody removed the socket, or put another one there?"""
        try:
            return os.stat(self.path).st_ino != self.inode
        except FileNotFoundError:
            return True

    def stop(self):
        lost = self.is_lost()
        self.server.stop(None).wait(5)
        if not lost and os.path.lexists(self.path):
            os.unlink(self.path)


def call(path, method, request, values, response, timeout=10):
    """Calls a method of whoever listens at this socket."""
    import grpc  # pylint: disable=import-outside-toplevel
    with grpc.insecure_channel(f"unix:{path}") as channel:
        try:
            data = channel.unary_unary(method)(encode(request, values), timeout=timeout)
        except grpc.RpcError as e:
            raise Refused(f"{path}: {method}: {e.code().name}: {e.details()}") from None
    return decode(response, data)
