from scoresheet.sandbox.accounts import pool

ALL = "         0          0 4294967295\n"


def test_the_host_gives_ids_that_no_distribution_uses():
    found = pool(ALL, ALL)
    assert found is not None
    assert found.first == 0x70000000
    assert found.first + found.size < 2**31


def test_a_container_gives_ids_that_it_maps():
    small = "0 100000 65536\n"
    found = pool(small, small)
    assert found is not None
    assert 61184 <= found.first < found.first + found.size <= 65536


def test_a_mapping_of_root_alone_gives_none():
    assert pool("0 1000 1\n", ALL) is None
    assert pool(ALL, "0 1000 1\n") is None
    assert pool("", "") is None
