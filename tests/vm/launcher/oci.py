#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""oci.py FOLDER KIND ROOT: makes an OCI folder with an image of the files in the folder ROOT.

KIND is "good", or says what is wrong with the image: a second layer that does what a layer may not do, a description that
makes no sense, or bytes that do not fit their digests.
"""
import hashlib
import io
import json
import os
import sys
import tarfile

folder, kind, root = sys.argv[1:]
blobs = os.path.join(folder, "blobs", "sha256")
os.makedirs(blobs)
VICTIM = os.path.abspath(folder) + ".victim"  # must not be made or changed


def keep(data, said=None):
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(blobs, digest), "wb") as file:
        file.write(data if said is None else said)
    return {"digest": "sha256:" + digest, "size": len(data)}


def layer(fill):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        fill(archive)
    return data.getvalue()


def entry(archive, name, what=tarfile.REGTYPE, link="", mode=0o755, data=b"", device=(1, 3)):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = what, link, mode, len(data)
    info.devmajor, info.devminor = device
    archive.addfile(info, io.BytesIO(data))


def no_owner(info):
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


HOSTILE = {
    "dotdot": lambda a: entry(a, "../../../../../../.." + VICTIM, data=b"x"),
    "absolute": lambda a: entry(a, VICTIM, data=b"x"),
    "through-link": lambda a: (entry(a, "way", tarfile.SYMTYPE, os.path.dirname(VICTIM)),
                               entry(a, "way/" + os.path.basename(VICTIM), data=b"x")),
    "hard-link": lambda a: (entry(a, "mine", tarfile.LNKTYPE, "../../../../../../.." + os.path.abspath("secret")),
                            entry(a, "mine", data=b"x")),
    "hard-link-way": lambda a: (entry(a, "way", tarfile.SYMTYPE, os.path.abspath(".")),
                                entry(a, "mine", tarfile.LNKTYPE, "way/secret"), entry(a, "mine", data=b"x")),
    "whiteout": lambda a: entry(a, "../../../../../../.." + os.path.dirname(os.path.abspath("secret")) + "/.wh.secret"),
    "special": lambda a: (entry(a, "node", tarfile.CHRTYPE), entry(a, "disk", tarfile.BLKTYPE, device=(8, 0)),
                          entry(a, "pipe", tarfile.FIFOTYPE), entry(a, "as-root", mode=0o6755, data=b"#!/bin/sh\n"),
                          entry(a, "closed", tarfile.DIRTYPE, mode=0), entry(a, "closed/file", data=b"x")),
    "no-archive": None,
}
CONFIG = {
    "env-object": {"Env": {"A": "b"}},
    "env-number": {"Env": [1]},
    "env-name": {"Env": ["A B=c"]},
    "env-code": {"Env": ["$(touch %s)=1" % VICTIM]},
    "env-zero": {"Env": ["A=b\0C=d"]},
    "env-many": {"Env": ["A%d=b" % i for i in range(1025)]},
    "command-string": {"Cmd": "sh"},
    "command-zero": {"Cmd": ["sh\0x"]},
    "folder-relative": {"WorkingDir": "../x"},
    "long": {"Labels": {"x": "y" * 1100000}},
    "arm": {},
    "no-command": {},
}
config = {"Env": ["PATH=/bin", "IMAGE=it's $(here)", "LD_PRELOAD=/gone.so", "LD_LIBRARY_PATH=/own"], "Entrypoint": ["/bin/sh"],
          "Cmd": ["-c", "echo own \"$@\"; pwd", "sh", "a  b"], "WorkingDir": "/data", "User": "12345"}
if kind in HOSTILE or kind == "no-command":
    config.update(Entrypoint=None, Cmd=None)
config.update(CONFIG.get(kind, {}))

layers = [layer(lambda a: a.add(root, ".", filter=no_owner))]
if kind in HOSTILE:
    layers.append(layer(HOSTILE[kind]) if HOSTILE[kind] else b"no archive" * 100)
description = {"os": "linux", "architecture": "arm64" if kind == "arm" else "amd64", "config": config, "rootfs":
               {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest() for data in layers]}}
text = json.dumps(description).encode()
if kind == "nonsense":
    text = text[:-20]
OCI = "application/vnd.oci.image."
manifest = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
            "config": dict(keep(text), mediaType=OCI + "config.v1+json"),
            "layers": [dict(keep(data), mediaType=OCI + "layer.v1.tar") for data in layers]}
if kind == "wrong-digest":
    keep(layers[0], layers[0][:-1] + b"x")
if kind == "digest-path":
    manifest["layers"][0]["digest"] = "sha256:../../../../../../.." + os.path.abspath("secret")
index = {"schemaVersion": 2, "manifests": [dict(keep(json.dumps(manifest).encode()), mediaType=manifest["mediaType"])]}
if kind == "no-manifest":
    index["manifests"] = []
with open(os.path.join(folder, "index.json"), "w", encoding="utf-8") as out:
    json.dump(index, out)
with open(os.path.join(folder, "oci-layout"), "w", encoding="utf-8") as out:
    out.write('{"imageLayoutVersion": "1.0.0"}')
if kind not in {"good", "wrong-digest", "digest-path", "no-manifest", "nonsense"} | set(HOSTILE) | set(CONFIG):
    sys.exit(kind + ": there is no such kind")
