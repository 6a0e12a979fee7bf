"""The judge alone: one good report, and every way to spoil it."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from scoresheet.sandbox.evidence import CORE, Expected, judge

CONTROL = {**dict.fromkeys(CORE, "reached"), "af_vsock": "reached", "af_tipc": "EAFNOSUPPORT"}
EXPECTED = Expected(
    writable=("/tmp", "/work"),
    places=("/", "/proc", "/dev", "/tmp", "/work", "/etc/passwd"),
    trees=("/usr", "/opt/agent"),
    uid=7000,
    seen_uid=7000,
    host_namespace="net:[1]",
    seen_namespace="net:[2]",
    name_service="passwd: files\ngroup: files\nhosts: files\n",
)
REPORT: dict[str, Any] = {
    "reach": {**dict.fromkeys(CORE, "ECONNREFUSED"), "af_vsock": "EAFNOSUPPORT", "af_tipc": "EAFNOSUPPORT"},
    "posture": {
        "network": ["link lo"],
        "network_namespace": "net:[2]",
        "privileges": {
            **{f"Cap{name}": "0000000000000000" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")},
            "NoNewPrivs": "1",
            "Seccomp": "2",
        },
        "descriptors": {"0": "pipe", "1": "pipe", "2": "pipe"},
        "mounts": [
            ["/", False, "tmpfs"],
            ["/usr", False, "ext4"],
            ["/usr/local", False, "ext4"],
            ["/opt/agent", False, "ext4"],
            ["/etc/passwd", False, "tmpfs"],
            ["/proc", True, "proc"],
            ["/proc/sys", False, "proc"],
            ["/dev", False, "tmpfs"],
            ["/dev/null", True, "devtmpfs"],
            ["/dev/pts", True, "devpts"],
            ["/tmp", True, "tmpfs"],
            ["/work", True, "ext4"],
        ],
        "devices": [],
        "pids": [1],
        "unix_sockets": [],
        "environment": ["PWD"],
        "name_lookup": "no answer (-2)",
        "name_service": "passwd: files\ngroup: files\nhosts: files\n",
    },
}


def failing(report=REPORT, control=CONTROL, hits=0, expected=EXPECTED):
    return judge(report, control, hits, expected).failing


def spoilt(**posture):
    report = copy.deepcopy(REPORT)
    report["posture"].update(posture)
    return report


def test_a_good_report_is_proof():
    judged = judge(REPORT, CONTROL, 0, EXPECTED)
    assert judged.failing == ()
    verdicts = {check.name: check.verdict for check in judged.checks}
    assert {verdicts[name] for name in CORE} == {"denied"}
    assert verdicts["af_tipc"] == "not_applicable", "what fails outside too proves nothing"
    assert verdicts["network"] == "holds"


@pytest.mark.parametrize("name", CORE)
def test_a_core_control_that_failed_or_was_not_made_is_no_proof(name):
    assert failing(control=CONTROL | {name: "EPERM"}) == (f"control:{name}",)
    assert failing(control={key: value for key, value in CONTROL.items() if key != name}) == (f"control:{name}",)


@pytest.mark.parametrize("name", [*CORE, "af_vsock", "af_tipc"])
def test_an_attempt_that_reached_or_was_not_tried_is_named(name):
    reached = copy.deepcopy(REPORT)
    reached["reach"][name] = "reached"
    assert failing(reached) == (name,)
    del reached["reach"][name]
    assert failing(reached) == (name,)


def test_a_canary_that_heard_the_inside_is_enough():
    assert failing(hits=1) == ("canary_hit",)


PRIVILEGES = REPORT["posture"]["privileges"]
MOUNTS = REPORT["posture"]["mounts"]


@pytest.mark.parametrize(
    ("name", "posture"),
    [
        ("network", {"network": ["link eth0", "link lo"]}),
        ("network", {"network": []}),
        ("network", {"network": ["link lo", "route by interface 2"]}),
        ("network_namespace", {"network_namespace": "net:[1]"}),
        ("network_namespace", {"network_namespace": "net:[3]"}),
        *(
            ("capabilities", {"privileges": PRIVILEGES | {f"Cap{name}": "1"}})
            for name in ("Eff", "Bnd", "Amb", "Prm", "Inh")
        ),
        ("capabilities", {"privileges": {"NoNewPrivs": "1", "Seccomp": "2"}}),
        ("no_new_privileges", {"privileges": PRIVILEGES | {"NoNewPrivs": "0"}}),
        ("seccomp", {"privileges": PRIVILEGES | {"Seccomp": "0"}}),
        ("descriptors", {"descriptors": {"0": "pipe", "7": "file"}}),
        ("descriptors", {"descriptors": {"0": "socket"}}),
        ("writable_mounts", {"mounts": [["/", True, "tmpfs"], *MOUNTS[1:]]}),
        ("writable_mounts", {"mounts": MOUNTS[:-1]}),
        ("mounts", {"mounts": [*MOUNTS, ["/mnt", False, "ext4"]]}),
        ("mounts", {"mounts": [*MOUNTS, ["/run/host", False, "tmpfs"]]}),
        ("mounts", {"mounts": [*MOUNTS, ["/usr2", False, "ext4"]]}),
        ("mounts", {"mounts": [*MOUNTS, ["/proc/x", False, "ext4"]]}),
        ("devices", {"devices": ["kvm"]}),
        ("processes", {"pids": [1, 2]}),
        ("processes", {"pids": [4711]}),
        ("unix_sockets", {"unix_sockets": ["/run/docker.sock"]}),
        ("environment", {"environment": ["AWS_SECRET_ACCESS_KEY"]}),
        ("names", {"name_lookup": "resolved"}),
        ("names", {"name_service": "hosts: files dns\nnameserver 192.0.2.1\n"}),
    ],
)
def test_a_fact_that_does_not_hold_is_named(name, posture):
    assert failing(spoilt(**posture)) == (name,)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("network_namespace", {"host_namespace": "net:[2]"}),
        ("network_namespace", {"seen_namespace": "not seen: Permission denied"}),
        ("account", {"seen_uid": 0}),
        ("account", {"seen_uid": 0, "uid": 0}),
        ("namespaces", {"shared_namespaces": ("ipc",)}),
        ("unix_sockets", {"bound_sockets": ("/opt/agent/x.sock",)}),
    ],
)
def test_what_the_host_saw_is_a_fact_too(name, change):
    assert failing(expected=replace(EXPECTED, **change)) == (name,)
