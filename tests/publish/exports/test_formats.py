import pytest

from scoresheet.cli import export
from scoresheet.publish.exports.formats import FORMATS
from tests.publish.exports.subjects import files, hostile, subject


def test_the_command_offers_every_format():
    assert tuple(sorted(FORMATS)) == export.FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_run_gives_the_same_bytes(name):
    for there in (subject, hostile):
        assert files(FORMATS[name].build(there())) == files(FORMATS[name].build(there()))
