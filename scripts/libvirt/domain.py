# SPDX-License-Identifier: GPL-2.0-or-later
"""The XML of a libvirt domain: puts a qCUDA device into it, and takes it out again. Nothing here talks
to libvirt. docs/vm/libvirt.md describes what is added.

minidom leaves namespaces where they are declared. ElementTree would declare all of them at the root, and
libvirt would then keep other people's metadata in another form."""

import re
from xml.dom import minidom
from xml.parsers.expat import ExpatError

QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"
OURS = "urn:qcuda:domain:1"
ID = "qcuda"  # of QEMU's chardev
VULKAN_ID = "qcuda-vulkan"  # of the GPU for Vulkan
# What libvirt calls QEMU's -sandbox. It denies QEMU to start programs, and the render server of --vulkan is one.
SANDBOX = "seccomp-sandbox"
SINGLE = ("-display", "-sandbox")  # options of --vulkan that have no id by which we would know them again

UNITS = {"b": 1, "bytes": 1, "KB": 10**3, "k": 2**10, "KiB": 2**10, "MB": 10**6, "M": 2**20, "MiB": 2**20,
         "GB": 10**9, "G": 2**30, "GiB": 2**30, "TB": 10**12, "T": 2**40, "TiB": 2**40}


class Refused(Exception):
    """A sentence for the user."""


def comma(text):
    """Quotes a text for use inside a QEMU option."""
    return text.replace(",", ",,")


def chardev_option(front, socket):
    # The general device does not survive the end of qcu-device, so it does not wait for another one.
    again = ",reconnect-ms=1000" if front == "ours" else ""
    return f"socket,id={ID},path={comma(socket)}{again}"


def device_option(front, sessions):
    if front == "ours":
        return f"virtio-qcuda-pci,chardev={ID},sessions={sessions}"
    # The general device gets the numbers that ours has by itself: docs/vm/qemu.md.
    return (f"vhost-user-test-device-pci,chardev={ID},virtio-id=21,num_vqs={sessions + 1},"
            "vq_size=512,config_size=64")


def device_args(front, socket, sessions):
    """QEMU's arguments for the device alone. The memory must be shared, too."""
    return ["-chardev", chardev_option(front, socket), "-device", device_option(front, sessions)]


def memory_args(size):
    """QEMU's arguments for shared memory of so many bytes."""
    mib = -(-size // 2**20)
    return ["-object", f"memory-backend-memfd,id=ram,size={mib}M,share=on",
            "-machine", "memory-backend=ram", "-m", f"{mib}M"]


def is_ours(option):
    """Is this the value of an argument that attach() added?"""
    return re.match(rf"socket,id={ID}(,|$)", option) or re.search(rf",(chardev={ID}|id={VULKAN_ID})(,|$)", option)


# ---- helpers for the tree ----

def elements(parent):
    return [c for c in parent.childNodes if c.nodeType == c.ELEMENT_NODE]


def child(parent, name, ns=None):
    """The first child element of this name, or None."""
    for c in elements(parent) if parent else []:
        if c.namespaceURI == ns and (c.localName or c.tagName) == name:
            return c
    return None


def text_of(element):
    return "".join(c.data for c in element.childNodes if c.nodeType == c.TEXT_NODE).strip()


def blank(node):
    return node is not None and node.nodeType == node.TEXT_NODE and not node.data.strip()


def insert_after(place, new):
    """Puts the element behind another one, on a line of its own if that one is."""
    parent, before = place.parentNode, place.previousSibling
    space = re.search(r"\n[ \t]*$", before.data) if blank(before) else None
    parent.insertBefore(new, place.nextSibling)
    if space:
        parent.insertBefore(parent.ownerDocument.createTextNode(space.group()), new)


def append(parent, new):
    """Puts the element into another one as its last."""
    others = elements(parent)
    if others:
        insert_after(others[-1], new)
        return
    parent.appendChild(new)
    before = parent.previousSibling
    space = re.search(r"\n[ \t]*$", before.data) if blank(before) else None
    if space and len(parent.childNodes) == 1:
        doc = parent.ownerDocument
        parent.insertBefore(doc.createTextNode(space.group() + "  "), new)
        parent.appendChild(doc.createTextNode(space.group()))


def remove(element):
    """Takes the element away, with the white space before it. What held it alone becomes empty."""
    parent = element.parentNode
    if blank(element.previousSibling):
        parent.removeChild(element.previousSibling)
    parent.removeChild(element)
    if all(blank(c) for c in parent.childNodes):
        for c in list(parent.childNodes):
            parent.removeChild(c)


ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&apos;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def written(node):
    """The node as libvirt writes it: with ' around values, where minidom has another character."""
    if node.nodeType == node.TEXT_NODE:
        return re.sub("[&<>\r]", lambda m: ESCAPES[m[0]], node.data)
    if node.nodeType != node.ELEMENT_NODE:
        return node.toxml()
    attributes = list(node.attributes.values())
    if node.tagName == "domain":
        attributes.sort(key=lambda a: a.name.startswith("xmlns"))  # as libvirt has them
    attributes = "".join(f" {a.name}='" + re.sub("[&<>'\n\r\t]", lambda m: ESCAPES[m[0]], a.value) + "'"
                         for a in attributes)
    inside = "".join(written(c) for c in node.childNodes)
    return f"<{node.tagName}{attributes}>{inside}</{node.tagName}>" if inside else f"<{node.tagName}{attributes}/>"


def canonical(element):
    """The same for two elements that say the same to libvirt, which sorts some of what it is given."""
    attributes = sorted((a.name, a.value) for a in element.attributes.values()
                        if not a.name.startswith("xmlns"))
    return (element.namespaceURI or "", element.localName or element.tagName, attributes, text_of(element),
            sorted(canonical(c) for c in elements(element)))


# ---- a domain ----

class Domain:
    def __init__(self, text):
        try:
            self.doc = minidom.parseString(text)
        except (ExpatError, ValueError) as e:
            raise Refused(f"this is no XML: {e}") from None
        self.root = self.doc.documentElement
        if self.root.tagName != "domain":
            raise Refused(f"this is no domain of libvirt: it begins with <{self.root.tagName}>")
        self.devices = child(self.root, "devices")
        if self.devices is None:
            raise Refused("the domain has no <devices>")
        name = child(self.root, "name")
        self.name = text_of(name) if name else ""

    def text(self):
        # An XML file that began without a header stays without one.
        return "".join(written(c) + "\n" for c in self.doc.childNodes)

    def emulator(self):
        e = child(self.devices, "emulator")
        return text_of(e) if e else ""

    def memory(self):
        """The domain's memory in bytes."""
        e = child(self.root, "memory")
        unit = (e.getAttribute("unit") or "KiB") if e else ""
        if not e or not re.fullmatch(r"[0-9]{1,15}", text_of(e)) or not int(text_of(e)) or unit not in UNITS:
            raise Refused("the domain has no <memory> that tells how much it has")
        return int(text_of(e)) * UNITS[unit]

    def state(self):
        """The element in the metadata by which we know what we have added, or None."""
        metadata = child(self.root, "metadata")
        return child(metadata, "device", OURS) if metadata else None

    def attached(self):
        return self.state() is not None

    def other_device(self):
        """True if somebody has put a qCUDA device there by hand."""
        if self.attached():
            return False
        return any(is_ours(a.getAttribute("value")) or "qcuda" in a.getAttribute("value").split(",")[0]
                   for a in self.args())

    def args(self):
        line = child(self.root, "commandline", QEMU)
        return [a for a in elements(line) if a.localName == "arg"] if line else []

    def env(self):
        line = child(self.root, "commandline", QEMU)
        return [e for e in elements(line) if e.localName == "env"] if line else []

    def hugepages(self):
        return child(child(self.root, "memoryBacking"), "hugepages") is not None

    # -- what keeps a device out --

    def check(self):
        kind = self.root.getAttribute("type")
        if kind not in ("kvm", "qemu"):
            raise Refused(f"the domain is of type {kind or 'unknown'}; qCUDA needs QEMU, so kvm or qemu")
        arch = child(child(self.root, "os"), "type")
        if arch is not None and arch.getAttribute("arch") not in ("", "x86_64"):
            raise Refused(f"the domain is a machine of the kind {arch.getAttribute('arch')};"
                          " qCUDA needs x86_64")
        if self.other_device():
            raise Refused("the domain has a qCUDA device that was put there by hand: see its <qemu:commandline>")
        self.memory()
        self.check_memory()

    def check_memory(self):
        backing = child(self.root, "memoryBacking")
        source, access = child(backing, "source"), child(backing, "access")
        # Without a type the source is that of the next element.
        if source is not None and source.getAttribute("type") not in ("memfd", "file"):
            raise Refused(f"the domain asks for memory of the type {source.getAttribute('type')}, which cannot be"
                          " shared: remove <source> from its <memoryBacking> with virsh edit")
        if access is not None and access.getAttribute("mode") != "shared":
            raise Refused("the domain asks for private memory, and qCUDA needs shared memory: remove <access>"
                          " from its <memoryBacking> with virsh edit")
        cells = child(child(self.root, "cpu"), "numa")
        for cell in elements(cells) if cells else []:
            if cell.getAttribute("memAccess") == "private":
                raise Refused(f"the domain asks for private memory in its NUMA cell {cell.getAttribute('id')},"
                              " and qCUDA needs shared memory: remove memAccess='private' with virsh edit")

    def check_vulkan(self, env):
        for a in self.args():
            if a.getAttribute("value") in SINGLE:
                raise Refused(f"the domain has {a.getAttribute('value')} in its <qemu:commandline>, and --vulkan needs"
                              " that of its own")
        for e in self.env():
            if e.getAttribute("name") in env:
                raise Refused(f"the domain sets {e.getAttribute('name')} in its <qemu:commandline>; set it where"
                              " qcu attach is called")
        for g in elements(self.devices):
            if g.tagName == "graphics":
                gl = child(g, "gl")
                kind = g.getAttribute("type")
                if kind in ("sdl", "dbus", "egl-headless") or gl is not None and gl.getAttribute("enable") == "yes":
                    raise Refused(f"the domain has <graphics type='{kind}'>, which draws in a way of its own; --vulkan"
                                  " goes with vnc, with spice without <gl>, and without graphics")

    # -- attach and detach --

    def attach(self, front, socket, sessions, emulator=None, seclabel=None, vulkan=None):
        """Puts a device in, and with vulkan, which is QEMU's arguments and environment, a GPU for Vulkan. Whatever
        attach() put in before goes out first."""
        self.detach()
        self.check()
        added = []
        state = self.doc.createElementNS(OURS, "qcuda:device")
        state.setAttribute("xmlns:qcuda", OURS)
        self.share_memory(added)
        if emulator and emulator != self.emulator():
            state.setAttribute("emulator", self.emulator())
            self.set_emulator(emulator)
            added.append("emulator")
        if seclabel:
            self.add_seclabel(seclabel)
            added.append("seclabel")
        self.add_args(device_args(front, socket, sessions), added)
        if vulkan:
            self.add_vulkan(*vulkan, state, added)
        metadata = child(self.root, "metadata")
        if metadata is None:
            metadata = self.doc.createElement("metadata")
            insert_after(child(self.root, "name") or elements(self.root)[0], metadata)
            added.append("metadata")
        state.setAttribute("added", " ".join(added))
        append(metadata, state)

    def share_memory(self, added):
        backing = child(self.root, "memoryBacking")
        if backing is None:
            backing = self.doc.createElement("memoryBacking")
            insert_after(child(self.root, "currentMemory") or child(self.root, "memory"), backing)
            added.append("memoryBacking")
        # Huge pages without a source lie in files of their own, which can be shared as they are.
        if child(backing, "source") is None and child(backing, "hugepages") is None:
            source = self.doc.createElement("source")
            source.setAttribute("type", "memfd")
            append(backing, source)
            added.append("source")
        if child(backing, "access") is None:
            access = self.doc.createElement("access")
            access.setAttribute("mode", "shared")
            append(backing, access)
            added.append("access")

    def set_emulator(self, path):
        e = child(self.devices, "emulator")
        if e is None:
            e = self.doc.createElement("emulator")
            first = elements(self.devices)
            if first:
                self.devices.insertBefore(e, first[0])
                if blank(e.previousSibling):
                    self.devices.insertBefore(self.doc.createTextNode(e.previousSibling.data), first[0])
            else:
                append(self.devices, e)
        for c in list(e.childNodes):
            e.removeChild(c)
        e.appendChild(self.doc.createTextNode(path))

    def add_seclabel(self, model):
        for label in elements(self.root):
            if label.tagName == "seclabel" and label.getAttribute("model") in ("", model):
                raise Refused(f"the domain has a <seclabel> of its own for {model}")
        label = self.doc.createElement("seclabel")
        label.setAttribute("type", "none")
        label.setAttribute("model", model)
        insert_after(self.devices, label)

    def add_args(self, args, added):
        line = child(self.root, "commandline", QEMU)
        if line is None:
            prefix = next((a.name[6:] for a in self.root.attributes.values()
                           if a.name.startswith("xmlns:") and a.value == QEMU), None)
            if prefix is None:
                prefix = "qemu"
                self.root.setAttribute("xmlns:qemu", QEMU)
                added.append("namespace")
            line = self.doc.createElementNS(QEMU, f"{prefix}:commandline")
            insert_after(elements(self.root)[-1], line)
            added.append("commandline")
        for a in args:
            append(line, self.qemu_element(line, "arg", value=a))

    def add_vulkan(self, args, env, state, added):
        self.check_vulkan(env)
        args = [f"{a},id={VULKAN_ID}" if before == "-device" else a for before, a in zip([""] + args, args)]
        self.add_args(args, added)
        for option, value in zip(args, args[1:]):
            if option in SINGLE:
                state.setAttribute(option[1:], value)
        line = child(self.root, "commandline", QEMU)
        for name, value in env.items():
            append(line, self.qemu_element(line, "env", name=name, value=value))
        state.setAttribute("env", " ".join(env))
        capabilities = child(self.root, "capabilities", QEMU)
        if capabilities is None:
            capabilities = self.qemu_element(line, "capabilities")
            insert_after(line, capabilities)
            added.append("capabilities")
        if not self.without_sandbox():
            append(capabilities, self.qemu_element(line, "del", capability=SANDBOX))
            added.append("sandbox")

    def qemu_element(self, line, tag, **attributes):
        e = self.doc.createElementNS(QEMU, f"{line.prefix}:{tag}" if line.prefix else tag)
        for key, value in attributes.items():
            e.setAttribute(key, value)
        return e

    def without_sandbox(self):
        """The elements that keep libvirt's -sandbox out."""
        capabilities = child(self.root, "capabilities", QEMU)
        return [e for e in elements(capabilities) if e.localName == "del" and
                e.getAttribute("capability") == SANDBOX] if capabilities else []

    def detach(self):
        """Takes out what attach() has put in. False if there was nothing."""
        state = self.state()
        if state is None:
            return False
        added = state.getAttribute("added").split()
        self.remove_args(state, added)
        self.remove_memory(added)
        emulator = state.getAttribute("emulator")
        if "emulator" in added:
            if emulator:
                self.set_emulator(emulator)
            else:
                remove(child(self.devices, "emulator"))
        if "seclabel" in added:
            for label in elements(self.root):
                if label.tagName == "seclabel" and label.getAttribute("type") == "none":
                    remove(label)
                    break
        metadata = state.parentNode
        remove(state)
        if "metadata" in added and not elements(metadata):
            remove(metadata)
        return True

    def remove_args(self, state, added):
        args = self.args()
        for option, value in zip(args, args[1:]):
            name, text = option.getAttribute("value"), value.getAttribute("value")
            if name in ("-chardev", "-device") and is_ours(text) or \
                    name in SINGLE and text == state.getAttribute(name[1:]):
                remove(option)
                remove(value)
        for e in self.env():
            if e.getAttribute("name") in state.getAttribute("env").split():
                remove(e)
        for e in self.without_sandbox() if "sandbox" in added else []:
            remove(e)
        capabilities = child(self.root, "capabilities", QEMU)
        if "capabilities" in added and capabilities is not None and not elements(capabilities):
            remove(capabilities)
        line = child(self.root, "commandline", QEMU)
        if "commandline" in added and line is not None and not elements(line):
            remove(line)
        if "namespace" in added and child(self.root, "commandline", QEMU) is None and \
                not any(c.namespaceURI == QEMU for c in elements(self.root)):
            self.root.removeAttribute("xmlns:qemu")

    def remove_memory(self, added):
        backing = child(self.root, "memoryBacking")
        for name in ("source", "access"):
            e = child(backing, name)
            if name in added and e is not None:
                remove(e)
        if "memoryBacking" in added and backing is not None and not elements(backing):
            remove(backing)


def same(one, other):
    """Do two domains say the same to libvirt?"""
    return canonical(one.root) == canonical(other.root)
