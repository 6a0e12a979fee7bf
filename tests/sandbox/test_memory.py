"""Where a group can be made, read from what /proc says on several kinds of machines."""

from pathlib import Path

from scoresheet.sandbox.memory import Home, homes

V1 = "33 24 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_version_1_gives_our_own_group():
    assert homes("4:memory:/a/b\n0::/\n", V1) == (Home(Path("/sys/fs/cgroup/memory/a/b"), 1),)


def test_version_2_gives_our_own_group_and_those_above():
    assert homes("0::/user.slice/x.scope\n", V2) == tuple(
        Home(Path(path), 2)
        for path in ("/sys/fs/cgroup/user.slice/x.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup")
    )


def test_a_mount_of_a_part_of_the_tree_is_taken_as_one():
    part = "33 24 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    assert homes("4:memory:/docker/abc\n", part) == (Home(Path("/sys/fs/cgroup/memory"), 1),)


def test_no_groups_give_nothing():
    assert homes("0::/\n", "24 1 0:22 / /sys rw - sysfs sysfs rw\n") == ()
    assert homes("", V2) == ()
