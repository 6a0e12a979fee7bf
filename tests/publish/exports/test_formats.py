from dataclasses import replace

import pytest

from scoresheet.cli import export
from scoresheet.publish.exports.formats import FORMATS
from scoresheet.publish.exports.subject import Attempt
from tests.publish.exports.subjects import files, hostile, subject
from tests.publish.runs import row


def test_the_command_offers_every_format():
    assert tuple(sorted(FORMATS)) == export.FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_run_gives_the_same_bytes(name):
    for there in (subject, hostile):
        assert files(FORMATS[name].build(there())) == files(FORMATS[name].build(there()))


@pytest.mark.parametrize("name", FORMATS)
def test_an_integer_of_more_digits_than_python_writes_is_written(name):
    there = subject()
    answered = replace(there, attempts=lambda: iter([Attempt(row("t00", 0, 0, answer=[10**5000]), True)]))
    written = b"".join(files(FORMATS[name].build(answered)).values())
    assert (b"1" + b"0" * 3000 in written) == (name != "huggingface")
