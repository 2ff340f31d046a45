"""The decision file: written behind the loop, rotated, read back whatever happened to it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.unit.explain.stage import raw_pod, staged

from bayplan.explain.decision_file import FILE_VERSION, DecisionFile, DecisionFileError, read_decisions
from bayplan.loop.record import DecisionRecord


def record(number: int) -> DecisionRecord:
    return DecisionRecord(number=number, time=float(number), pod=f"default/p{number}", uid=str(number), profile="x")


def test_what_is_written_is_read_back_newest_first(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path / "deep" / "decisions.jsonl")
    for number in range(3):
        file.append(record(number))
    file.flush()

    assert read_decisions(file.path) == ([record(2), record(1), record(0)], 0)


def test_it_is_rotated_and_the_oldest_part_goes(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path / "d.jsonl", max_bytes=300, keep=2)
    for number in range(40):
        file.append(record(number))
        file.flush()
    names = sorted(path.name for path in tmp_path.iterdir())
    records, _ = read_decisions(file.path) if file.path.exists() else ([], 0)

    assert names[-2:] == ["d.jsonl.1", "d.jsonl.2"]
    assert len(names) <= 3
    assert [r.number for r in records] == sorted((r.number for r in records), reverse=True)


def test_a_cut_line_costs_that_line_only(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    DecisionFile(path)
    path.write_bytes(b'{"number": 1, "time": 1.0, "po')
    again = DecisionFile(path)
    again.append(record(7))
    again.flush()

    assert read_decisions(path) == ([record(7)], 1)


def test_it_is_of_a_version_and_for_one_user_also_after_it_was_rotated(tmp_path: Path) -> None:
    old = tmp_path / "d.jsonl"
    old.write_bytes(msgspec.json.encode(record(1)) + b"\n")
    old.chmod(0o644)
    file = DecisionFile(old, max_bytes=300, keep=2)
    for number in range(2, 6):
        file.append(record(number))
        file.flush()
    (tmp_path / "later.jsonl").write_bytes(b'{"version":"bayplan.dev/decisions/v9"}\n' + msgspec.json.encode(record(1)))

    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("d.jsonl*")} == {0o600}
    assert [each.number for each in read_decisions(old)[0]][-1] <= 3 and read_decisions(old)[1] == 0
    newest = DecisionFile(tmp_path / "new.jsonl")
    assert newest.path.read_text() == f'{{"version":"{FILE_VERSION}"}}\n'
    assert read_decisions(tmp_path / "later.jsonl") == ([], 1)


def test_a_folder_holds_the_file_under_its_usual_name(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    file.append(record(7))
    file.flush()

    assert file.path == tmp_path / "decisions.jsonl"
    assert read_decisions(tmp_path) == ([record(7)], 0)


def test_files_that_cannot_be_used_say_so(tmp_path: Path) -> None:
    with pytest.raises(DecisionFileError, match="does not exist"):
        read_decisions(tmp_path / "nothing")
    (tmp_path / "a-file").touch()
    with pytest.raises(DecisionFileError, match="cannot be written"):
        DecisionFile(tmp_path / "a-file/d.jsonl")


def test_a_full_disk_costs_records_and_nothing_else(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path / "d.jsonl")
    file.path.unlink()
    file.path.mkdir()
    file.append(record(1))
    file.flush()

    assert file.lost == 1


def test_a_message_that_is_no_text_costs_its_record(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path / "d.jsonl")
    file.append(msgspec.structs.replace(record(1), message="\ud800"))
    file.append(record(2))
    file.flush()

    assert (read_decisions(file.path)[0], file.lost) == ([record(2)], 1)


async def test_a_scheduler_writes_it_and_it_outlives_the_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    for round_ in range(2):
        async with staged(2, decision_file=path) as stage:
            await stage.create(raw_pod(f"web-{round_}"), raw_pod(f"big-{round_}", cpu="900"))
            await stage.settled(bound=1, failed=1)

    records, bad = read_decisions(path)

    assert bad == 0
    assert {(r.pod, r.outcome) for r in records} >= {
        ("default/web-0", "bound"),
        ("default/web-1", "bound"),
        ("default/big-0", "unschedulable"),
        ("default/big-1", "unschedulable"),
    }
