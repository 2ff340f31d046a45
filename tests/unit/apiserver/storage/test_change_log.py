"""Changes that wait for the database: what is kept, in which order, and what a cut or a failure does."""

from __future__ import annotations

from pathlib import Path

from bayplan.apiserver.storage.change_log import Record, StorageLog


def record(revision: int) -> Record:
    return Record(revision, "pods", "default", f"p{revision}", b"{}" if revision % 2 else None)


def test_what_was_appended_is_found_in_order_whichever_file_it_is_in(tmp_path: Path) -> None:
    log = StorageLog(tmp_path)
    log.append(record(1))
    log.switch()
    log.append(record(2))
    log.close()

    assert StorageLog(tmp_path).left_behind() == [record(1), record(2)]


def test_a_file_is_emptied_only_when_it_was_carried_over(tmp_path: Path) -> None:
    log = StorageLog(tmp_path)
    log.append(record(1))
    log.switch()
    log.append(record(2))
    log.switch()  # the first still waits: nothing may be written behind it and emptied with it
    log.append(record(3))
    log.forget_carried_over()

    assert log.left_behind() == [record(2), record(3)]
    log.close()


def test_a_record_that_was_cut_off_or_cannot_be_read_is_dropped(tmp_path: Path) -> None:
    log = StorageLog(tmp_path)
    log.append(record(1))
    log.close()
    with (tmp_path / "changes-0.log").open("ab") as file:
        file.write(b"\x00\x00\x00\x02\xc1\xc1\x00\x00\x00\x09cut")

    assert StorageLog(tmp_path).left_behind() == [record(1)]
