#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""QEMU with its software processor beside User-Mode Linux: another front-end, another driver."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import t as frame                                                   # noqa: E402
from guest import Nic, QemuGuest, UmlGuest                          # noqa: E402
from t import check, equal, until                                   # noqa: E402
from weft import Weft, iperf, iperf_server, transfer, xfer          # noqa: E402


def stats(w, name):
    return next(s for s in w.show()["stats"] if s["name"] == name)


def start(w, **kw):
    """A QEMU guest on port q that connects again by itself, a UML guest on port u."""
    q = QemuGuest("q", [Nic(w.socket("q"), ip="10.0.0.1/24+fd00::1/64", mac=w.port("q")["mac"],
                            chardev="reconnect=1", **kw)], extra=[xfer()]).boot()
    u = UmlGuest("u", [Nic(w.socket("u"), ip="10.0.0.2/24+fd00::2/64")], extra=[xfer()]).boot()
    u.ready()
    q.ready()
    return q, u


def with_uml(t):
    """Traffic, reboot, driver reload, weft going away and coming back, death under load."""
    with Weft("vhost-user:q", "vhost-user:u") as w:
        q, u = start(w)
        with t.case("features negotiated"):
            p = w.port("q")
            check(p["link"], f"no link: {p['missing']}")
            for f in ("csum", "guest_tso4", "host_tso4", "mrg_rxbuf", "indirect_desc", "event_idx", "version_1"):
                check(f in p["features"].split(), f"no {f} in {p['features']}")
        with t.case("weft wait finds the link"):
            equal(w.call("wait", "q").returncode, 0, "status of weft wait q")
        with t.case("ping each way, v4 and v6"):
            q.run("ping -c 3 -i 0.2 10.0.0.2 && ping -c 3 -i 0.2 fd00::2")
            u.run("ping -c 3 -i 0.2 10.0.0.1 && ping -c 3 -i 0.2 fd00::1")
        with t.case("16 MiB each way, equal"):
            transfer(q, u, "10.0.0.2", 16, seed=t.seed)
            transfer(u, q, "fd00::1", 16, seed=t.seed)
        with t.case("iperf3 each way"):
            iperf_server(u)
            for options in ("", "-R"):
                check(iperf(q, "10.0.0.2", 1, options) > 0.001, f"iperf3 {options}: nothing came")
        with t.case("driver unloaded and loaded again"):
            q.run("rmmod virtio_net && sleep 0.2 && insmod /mods/virtio_net.ko && sleep 0.5")
            q.setup()
            transfer(q, u, "10.0.0.2", 4, seed=t.seed)
        with t.case("guest reboots under load"):
            iperf_server(u)
            before = stats(w, "u")["out"]["bytes"]
            q.background("iperf3 -c 10.0.0.2 -t 60")
            until(lambda: stats(w, "u")["out"]["bytes"] > before + (4 << 20), "load before the reboot", 20)
            q.reboot()
            q.ready()
            transfer(u, q, "10.0.0.1", 4, seed=t.seed)
        with t.case("weft stopped and started under the running guest"):
            w.stop()
            time.sleep(0.3)
            w.start()
            until(lambda: w.port("q")["link"], "link of q after the restart", 20)
            until(lambda: q.run("cat /sys/class/net/eth0/carrier", check=False).out.strip() == "1",
                  "carrier in the guest", 20)
            # User-Mode Linux does not connect again: its guest starts anew
            u.kill()
            u.boot().ready()
            q.run("ip neigh flush all; ping -c 3 -W 3 10.0.0.2")
            transfer(q, u, "10.0.0.2", 16, seed=t.seed)
            transfer(u, q, "10.0.0.1", 16, seed=t.seed)
        with t.case("weft killed and started under load"):
            iperf_server(u)
            q.background("iperf3 -c 10.0.0.2 -t 60")
            time.sleep(1)
            w.kill()
            w.start()           # takes over the sockets that were left behind
            until(lambda: w.port("q")["link"], "link of q after the restart", 20)
            u.kill()
            u.boot().ready()
            q.run("killall -q -9 iperf3; ip neigh flush all; ping -c 3 -W 3 10.0.0.2")
            transfer(q, u, "10.0.0.2", 4, seed=t.seed)
        with t.case("guest killed under load, the other goes on"):
            iperf_server(u)
            before = stats(w, "u")["out"]["bytes"]
            q.background("iperf3 -c 10.0.0.2 -t 60")
            until(lambda: stats(w, "u")["out"]["bytes"] > before + (4 << 20), "load before the kill", 20)
            q.kill()
            until(lambda: not w.port("q")["link"], "link of q still up")
            check(w.alive(), "weft is gone: " + w.errors())
            check(w.port("u")["link"], "link of u went down, too")
        u.stop()
        q.stop()


def jumbo_no_mergeable(t):
    """MTU 9000 at a driver without mergeable buffers and without offloads: all in one buffer."""
    with Weft("vhost-user:q,mtu=9000", "vhost-user:u,mtu=9000") as w:
        # without guest_tso* Linux posts buffers of the MTU only
        q, u = start(w, device="mrg_rxbuf=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,host_mtu=9000", mtu=9000)
        u.run("ip link set eth0 mtu 9000")
        with t.case("features: no mrg_rxbuf, no guest_tso"):
            p = w.port("q")
            for f in ("mrg_rxbuf", "guest_tso4", "guest_tso6"):
                check(f not in p["features"].split(), f"{f} in {p['features']}")
        with t.case("ping of 8900 bytes"):
            u.run("ping -c 3 -i 0.2 -s 8900 10.0.0.1")
        with t.case("16 MiB each way, segmented for the guest, equal"):
            transfer(u, q, "10.0.0.1", 16, seed=t.seed)
            transfer(q, u, "10.0.0.2", 16, seed=t.seed)
            check(stats(w, "q")["fit_segments"] > 0, "nothing was segmented for q")
        u.stop()
        q.stop()


def server_of_qemu(t):
    """QEMU listens, weft connects: server=off."""
    rundir = frame.workdir("weft-t")
    path = rundir / "q.sock"
    q = QemuGuest("q", [Nic(str(path), ip="10.0.0.1/24", chardev="server=on,wait=on")], extra=[xfer()])
    with Weft(f"vhost-user:{path},name=q,server=off", "vhost-user:u", rundir=rundir) as w:
        with t.case("weft runs before there is anybody to connect to"):
            check(w.alive() and not w.port("q")["link"], "it should wait, without link")
        q.boot()
        u = UmlGuest("u", [Nic(w.socket("u"), ip="10.0.0.2/24")], extra=[xfer()]).boot()
        u.ready()
        q.ready()
        with t.case("ping and 4 MiB"):
            q.run("ping -c 3 -i 0.2 10.0.0.2")
            transfer(u, q, "10.0.0.1", 4, seed=t.seed)
        u.stop()
        q.stop()


if __name__ == "__main__":
    frame.main(with_uml, jumbo_no_mergeable, server_of_qemu)
