import pytest

from scoresheet import canonical, digest
from scoresheet.documents.model_recording import ModelRecording
from scoresheet.errors import Malformed, ScoresheetError, Usage
from scoresheet.model.recording import Hit
from scoresheet.run import journal
from scoresheet.run.model_recording import RECORDING, Recorded, made, pieces, seal
from scoresheet.run.plan import Episode
from tests.model.entries import entry
from tests.publish.runs import PACK, plan, row

PATH = "/v1/responses"
ASKED = b'{"model":"m"}'


def write(folder, *attempts, logs=True, **more):
    """A run in which the answers of each attempt of one episode are its number; (attempt, exit reason) of each."""
    the_plan = plan(1, 1, model_kinds=("openai",), model_endpoints=("api.example:443",), **more)
    folder.mkdir()
    journal.write_plan(folder, the_plan)
    lines = []
    for number, reason in attempts:
        episode = folder / Episode("t00", 0, number, 0).folder
        episode.mkdir(parents=True)
        if logs:
            answer = entry(path=PATH, request=ASKED, response=b"%d" % number)
            refused = entry(path=PATH, request=ASKED, refused="no")
            (episode / "model.jsonl").write_bytes(refused.line() + answer.line())
        one = row("t00", 0, int(reason == "completed"), attempt=number, exit_reason=reason)
        lines.append(canonical.line(one.model_dump(mode="json")))
    (folder / "rows.jsonl").write_bytes(b"".join(lines))
    return the_plan


def answer(recorded, counted, task_id="t00"):
    found = recorded.tape(Episode(task_id, 0, 9, 0, counted)).ask("openai", "POST", PATH, ASKED)
    return found.entry.response if isinstance(found, Hit) else None


def test_each_attempt_that_counts_is_answered_from_its_own(tmp_path):
    write(tmp_path / "run", (2, "completed"), (0, "harness_error"), (1, "agent_error"), retries=1)
    recorded = Recorded.of(tmp_path / "run", PACK)
    assert [answer(recorded, counted) for counted in (0, 1, 7)] == [b"1", b"2", b"2"]
    assert answer(recorded, 0, "other") is None
    assert recorded.document.calls == 2


def test_a_recording_is_named_by_its_digest_sealed_or_not(tmp_path):
    the_plan = write(tmp_path / "run", (0, "completed"))
    loose = Recorded.of(tmp_path / "run", PACK)
    sealed = seal(tmp_path / "run", the_plan)
    assert sealed == digest.of((tmp_path / "run" / RECORDING).read_bytes()) == loose.sha256
    again = Recorded.of(tmp_path / "run", PACK)
    assert (again.sha256, again.planned.endpoints, again.planned.run) == (sealed, ("api.example:443",), "run")
    text = (tmp_path / "run" / RECORDING).read_bytes()
    assert ModelRecording.from_bytes(text, RECORDING) == made(tmp_path / "run", the_plan)


def test_its_text_is_made_an_episode_at_a_time_from_rows_in_any_order(tmp_path):
    the_plan = write(tmp_path / "run", (2, "completed"), (0, "harness_error"), (1, "agent_error"), retries=1)
    rows = tuple(journal.read_rows(tmp_path / "run" / "rows.jsonl"))
    assert b"".join(pieces(tmp_path / "run", the_plan, rows)) == made(tmp_path / "run", the_plan).text()
    assert b"".join(pieces(tmp_path / "run", the_plan, rows[::-1])) == made(tmp_path / "run", the_plan).text()
    write(tmp_path / "empty")
    assert b"".join(pieces(tmp_path / "empty", the_plan, ())) == made(tmp_path / "empty", the_plan).text()


@pytest.mark.parametrize("left", [None, b"", b"[]", b"\xff"])
def test_a_sealed_recording_that_was_changed_is_refused_whatever_lies_in_its_place(tmp_path, left):
    run = tmp_path / "run"
    the_plan = write(run, (0, "completed"))
    journal.write_plan(run, the_plan.model_copy(update={"model_recording_sha256": seal(run, the_plan)}))
    Recorded.of(run, PACK)
    whole = (run / RECORDING).read_bytes()
    if left is None:
        (run / RECORDING).unlink()
    else:
        (run / RECORDING).write_bytes(left)
    with pytest.raises(ScoresheetError, match="is not what was sealed"):
        Recorded.of(run, PACK)
    log = run / Episode("t00", 0, 0, 0).folder / "model.jsonl"
    log.write_bytes(entry(path=PATH, request=ASKED, response=b"better").line())
    for forged in (whole, made(run, the_plan).text()):
        (run / RECORDING).write_bytes(forged)
        with pytest.raises(ScoresheetError, match="is not what was sealed"):
            Recorded.of(run, PACK)


def test_a_run_that_went_on_after_it_was_sealed_is_taken_as_it_lies(tmp_path):
    run = tmp_path / "run"
    seal(run, write(run, (0, "completed")))
    log = run / Episode("t00", 0, 0, 0).folder / "model.jsonl"
    log.write_bytes(log.read_bytes() + entry(path=PATH, request=b'{"model":"more"}').line())
    assert Recorded.of(run, PACK).document.calls == 2


def test_a_log_that_is_none_is_named_with_its_episode(tmp_path):
    write(tmp_path / "run", (0, "completed"))
    log = tmp_path / "run" / Episode("t00", 0, 0, 0).folder / "model.jsonl"
    log.write_bytes(log.read_bytes() + b"{}\n")
    with pytest.raises(Malformed) as refused:
        Recorded.of(tmp_path / "run", PACK)
    assert refused.value.where == "run/episodes/t00/0.0/model.jsonl:3"
    log.unlink()
    log.mkdir()
    with pytest.raises(Usage, match="can't be read"):
        Recorded.of(tmp_path / "run", PACK)


def test_a_log_that_changes_while_it_is_replayed_is_refused(tmp_path):
    write(tmp_path / "run", (0, "completed"))
    recorded = Recorded.of(tmp_path / "run", PACK)
    log = tmp_path / "run" / Episode("t00", 0, 0, 0).folder / "model.jsonl"
    log.write_bytes(log.read_bytes() + entry().line())
    with pytest.raises(ScoresheetError, match="changed while it was replayed"):
        answer(recorded, 0)


def test_a_run_that_lacks_a_log_is_no_recording(tmp_path):
    write(tmp_path / "run", (0, "completed"), logs=False)
    with pytest.raises(Usage, match="are not there"):
        Recorded.of(tmp_path / "run", PACK)


def test_a_run_without_a_model_is_no_recording(tmp_path):
    the_plan = write(tmp_path / "run", (0, "completed"), logs=False)
    journal.write_plan(tmp_path / "run", the_plan.model_copy(update={"model_kinds": (), "model_endpoints": ()}))
    with pytest.raises(ScoresheetError, match="no model calls to replay"):
        Recorded.of(tmp_path / "run", PACK)


def test_a_run_of_another_pack_is_no_recording(tmp_path):
    write(tmp_path / "run", (0, "completed"))
    with pytest.raises(ScoresheetError, match="is not this one"):
        Recorded.of(tmp_path / "run", "0" * 64)


def test_what_was_replayed_can_be_replayed_again_from_where_it_was_live(tmp_path):
    the_plan = write(tmp_path / "first", (0, "completed"))
    replayed = Recorded.of(tmp_path / "first", PACK).planned
    write(tmp_path / "second", (0, "completed"), model_replayed=replayed)
    second = Recorded.of(tmp_path / "second", PACK)
    assert second.document.endpoints == the_plan.model_endpoints
