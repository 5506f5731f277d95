# SPDX-License-Identifier: BSD-2-Clause
"""initrd - the file system of a test guest: a Debian kernel's modules, busybox, a few host programs.

Written here in the "newc" archive format, so that neither root nor cpio is needed. The same image
serves every guest of a kind: what a guest is to do comes over its control line (see guest.py).
"""
import os
import pathlib
import re
import shutil
import subprocess

PROGRAMS = ("ip", "ethtool", "iperf3")
PATHS = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"

INIT = r"""#!/bin/dash
# Applets go to a directory searched last: real tools win.
/bin/busybox mkdir -p /applets
/bin/busybox --install -s /applets
/bin/busybox ln -sf /bin/dash /bin/sh
export PATH=/bin:/applets HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o size=80% tmp /tmp
mkdir -p /dev/pts && mount -t devpts pts /dev/pts
while read -r m; do insmod "/mods/$m" || echo "insmod $m failed"; done </mods/order
exec 3<>"/dev/$(cat /etc/control-line)"
stty raw -echo <&3
ip link set lo up
sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 2>/dev/null
echo "control line ready after $(cut -d' ' -f1 /proc/uptime) s"
printf '@@ready\n' >&3
# One request: a line "run ID BYTES SECONDS", then BYTES of shell script.
while read -r word id bytes seconds <&3; do
    case $word in
    run)
        dd bs="$bytes" count=1 iflag=fullblock of=/tmp/.command <&3 2>/dev/null
        printf '@@begin %s\n' "$id" >&3
        timeout -s KILL "$seconds" dash /tmp/.command >&3 2>&1 3>&- </dev/null
        printf '\n@@exit %s %s\n' "$id" $? >&3 ;;
    ping) printf '@@ready\n' >&3 ;;
    reboot) reboot -f ;;
    off) sync; poweroff -f ;;
    esac
done
poweroff -f
"""


class Archive:
    """A "newc" archive in memory."""

    def __init__(self):
        self.out = bytearray()
        self.inode = 0
        self.names = set()

    def _member(self, name, mode, data):
        self.inode += 1
        head = "070701" + "".join(f"{v:08X}" for v in (
            self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0))
        for part in (head.encode() + name.encode() + b"\0", data):
            self.out += part + bytes(-(len(self.out) + len(part)) % 4)

    def folder(self, name):
        parts = name.split("/")
        for i in range(1, len(parts) + 1):
            sub = "/".join(parts[:i])
            if sub and sub not in self.names:
                self.names.add(sub)
                self._member(sub, 0o040755, b"")

    def add(self, name, data, mode=0o644):
        name = name.lstrip("/")
        if name in self.names:
            return
        self.folder(os.path.dirname(name))
        self.names.add(name)
        self._member(name, 0o100000 | mode, data if isinstance(data, bytes) else data.encode())

    def finish(self):
        self._member("TRAILER!!!", 0, b"")
        return bytes(self.out)


def find_program(name):
    return shutil.which(name, path=PATHS)


def add_program(archive, path):
    """The program in /bin and its shared libraries where they are at home."""
    real = pathlib.Path(path)
    archive.add("bin/" + real.name, real.read_bytes(), 0o755)
    listing = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    for lib in sorted(set(re.findall(r"(/\S+\.so\S*)", listing))):
        archive.add(lib, pathlib.Path(lib).read_bytes(), 0o755)


def add_modules(archive, folder, names):
    """The modules and what they depend on, and the order to load them in."""
    deps, order = {}, []
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        deps[re.sub(r"\.ko(\.\w+)?$", "", os.path.basename(path))] = [path] + rest.split()
    for name in names:
        # nearest dependency first: load from the far end; built-in modules are not listed
        for path in reversed(deps.get(name, [])):
            base = os.path.basename(path)
            if base not in order:
                order.append(base)
                archive.add("mods/" + base, (folder / path).read_bytes())
    archive.add("mods/order", "".join(m + "\n" for m in order))


def build(out, module_folder, modules, control_line, extra=()):
    """Write the image to the path `out` (whole or not at all)."""
    a = Archive()
    for folder in ("bin", "proc", "sys", "dev", "etc", "tmp", "run", "root", "applets", "mods"):
        a.folder(folder)
    a.add("bin/busybox", pathlib.Path(find_program("busybox")).read_bytes(), 0o755)
    for name in ("dash",) + PROGRAMS + tuple(extra):
        path = name if "/" in name else find_program(name)
        if path:
            add_program(a, path)
    add_modules(a, pathlib.Path(module_folder), modules)
    a.add("etc/control-line", control_line + "\n")
    a.add("init", INIT, 0o755)
    part = f"{out}.{os.getpid()}"
    with open(part, "wb") as f:
        f.write(a.finish())
    os.rename(part, out)
