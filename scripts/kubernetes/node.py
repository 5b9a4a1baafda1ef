# SPDX-License-Identifier: GPL-2.0-or-later
"""The devices of this node: units of systemd, each a qcu-device for one claim or slot. Nothing is kept in memory. What
there is says itself, so the driver may end at any moment:

    STATE/NAME.conf              the options of qcu-device, and whose device it is
    STATE/NAME/                  the folder that a pod sees, with the socket vm.sock
    qcu-device@NAME.service      reads NAME.conf
    CDI/qcuda-NAME.json          for a claim: how a container gets the folder; made when all else is there

A device with all of these is whole. One that is not was left by a driver that ended halfway, and is removed."""

import glob
import json
import os
import re
import shutil
import subprocess
import time

from wire import Refused

KIND = "qcuda.example/vm"
INSIDE = "/run/qcuda"  # where a pod sees its folder
NAME = re.compile(r"claim-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|slot-[0-9]{1,3}")
RUNS = ("active", "activating", "reloading")  # activating: between two virtual machines
SOCKET_SECONDS = 20


class Host:
    """Runs programs of the host: from a container, in the host's root folder."""

    def __init__(self, root):
        self.before = ["chroot", root] if root else []
        self.env = {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "LC_ALL": "C",
                    "SYSTEMD_IGNORE_CHROOT": "1"}
        if root:
            self.env["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"

    def run(self, *command):
        """The exit code and the output. A program that does not end in time has failed."""
        try:
            p = subprocess.run(self.before + list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=30, check=False, env=self.env)
        except subprocess.TimeoutExpired:
            return 124, f"{command[0]} did not end"
        except OSError as e:
            return 127, f"{command[0]}: {e.strerror}"
        return p.returncode, p.stdout.decode("utf-8", "replace")


def unit_of(name):
    return f"qcu-device@{name}.service"


def write_whole(path, text, mode):
    """The file has all of the text, or is not there. Container runtimes skip the ending .half."""
    half = path + ".half"
    with open(half, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, mode)) as f:
        f.write(text)
    os.replace(half, path)


class Node:
    def __init__(self, settings, host, pause=time.sleep):
        self.settings, self.host, self.pause = settings, host, pause

    # -- where things are --

    def conf(self, name):
        return f"{self.settings.state}/{name}.conf"

    def folder(self, name):
        return f"{self.settings.state}/{name}"

    def cdi(self, name):
        return f"{self.settings.cdi}/qcuda-{name}.json"

    def systemctl(self, *words):
        code, said = self.host.run("systemctl", *words)
        if code:
            raise Refused(f"systemctl {' '.join(words)}: exit code {code}: {said.strip()[-200:]}")
        return said

    def units(self):
        """The state of each unit that is loaded, by its device's name."""
        found = {}
        said = self.systemctl("list-units", "--all", "--plain", "--full", "--no-legend", "--no-pager",
                              unit_of("claim-*"), unit_of("slot-*"))
        for line in said.splitlines():
            words = line.split()
            m = re.fullmatch(r"qcu-device@(.*)\.service", words[0]) if len(words) >= 4 else None
            if m and NAME.fullmatch(m[1]):
                found[m[1]] = words[2]
        return found

    def names(self, units):
        """The names of all devices of which anything is there."""
        found = {n for n, state in units.items() if state != "inactive"}
        for path in glob.glob(f"{self.settings.state}/*") + glob.glob(f"{self.settings.cdi}/qcuda-*.json*"):
            m = NAME.fullmatch(re.sub(r"^qcuda-|\..*", "", os.path.basename(path)))
            if m:
                found.add(m[0])
        return found

    def is_whole(self, name):
        return os.path.exists(self.conf(name)) and os.path.isdir(self.folder(name)) and \
            (name.startswith("slot-") or os.path.exists(self.cdi(name)))

    def note(self, name):
        """What prepare() was given as note, or None if that cannot be told."""
        with open(self.conf(name), encoding="utf-8") as f:
            try:
                note = json.loads(f.readline()[1:])
            except ValueError:
                return None
        return note if isinstance(note, dict) else None

    # -- prepare and remove --

    def prepare(self, name, note, options):
        """Makes a device, or sees to it that it runs if it has been made. What is whole stays as it is: a virtual machine
        may use it. If something fails, nothing is left."""
        if self.is_whole(name):
            self.start(name)
            return
        self.remove(name)
        if len(self.names(self.units())) >= self.settings.devices:
            raise Refused(f"this node has {self.settings.devices} devices already, and may have no more")
        try:
            write_whole(self.conf(name), "#" + json.dumps(note) + "\n" + options, 0o640)
            os.mkdir(self.folder(name), 0o700)
            os.chown(self.folder(name), -1, self.settings.group)
            # Sockets in it get its group.
            os.chmod(self.folder(name), 0o2750)
            self.start(name)
            if name.startswith("claim-"):
                os.makedirs(self.settings.cdi, 0o755, exist_ok=True)
                write_whole(self.cdi(name), self.spec(name), 0o644)
        except (Refused, OSError) as e:
            try:
                self.remove(name)
            except (Refused, OSError) as again:
                raise Refused(f"{e}; and it cannot be removed: {again}") from None
            raise Refused(str(e)) from None

    def start(self, name):
        """Starts the unit unless it runs, and waits until it listens."""
        state = self.units().get(name)
        if state in RUNS:
            return
        if state == "failed":  # perhaps for having been started too often
            self.host.run("systemctl", "reset-failed", unit_of(name))
        self.systemctl("start", unit_of(name))
        for _ in range(SOCKET_SECONDS * 20):
            if os.path.exists(f"{self.folder(name)}/vm.sock"):
                return
            if self.units().get(name) not in RUNS:
                break
            self.pause(0.05)
        raise Refused(f"{unit_of(name)} does not listen; see journalctl -u {unit_of(name)}")

    def remove(self, name):
        """Removes all that is there of a device. First no container can get it any more."""
        for path in glob.glob(self.cdi(name) + "*"):
            os.unlink(path)
        state = self.units().get(name)
        if state not in (None, "inactive"):
            self.systemctl("stop", unit_of(name))
            self.host.run("systemctl", "reset-failed", unit_of(name))
        if os.path.isdir(self.folder(name)):
            shutil.rmtree(self.folder(name))
        for path in (f"{self.settings.state}/{name}.metrics", self.conf(name) + ".half", self.conf(name)):
            if os.path.lexists(path):
                os.unlink(path)

    def sweep(self, is_wanted):
        """Removes what is not whole or not wanted any more, and starts what has stopped. is_wanted gets the name and the
        note. Returns what could not be done."""
        problems = []
        units = self.units()
        for name in sorted(self.names(units)):
            try:
                note = self.note(name) if self.is_whole(name) else None
                if note is None or not is_wanted(name, note):
                    self.remove(name)
                elif units.get(name) not in RUNS:
                    self.start(name)
            except (Refused, OSError) as e:
                problems.append(f"{name}: {e}")
        return problems

    def spec(self, name):
        """For the container runtime: what a container gets."""
        mount = {"hostPath": self.folder(name), "containerPath": INSIDE,
                 "options": ["ro", "nosuid", "nodev", "noexec", "bind"]}
        return json.dumps({"cdiVersion": "0.6.0", "kind": KIND, "devices": [
            {"name": name, "containerEdits": {"env": [f"QCUDA_SOCKET={INSIDE}/vm.sock"], "mounts": [mount]}}]}) + "\n"

    def cdi_id(self, name):
        return f"{KIND}={name}"
