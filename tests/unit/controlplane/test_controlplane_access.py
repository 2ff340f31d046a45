"""Kubeconfig files, static tokens and the anonymous user."""

from __future__ import annotations

import base64
import csv
from pathlib import Path

import pytest
import yaml
from tests.controlplane.access import (
    TokenFile,
    write_authentication_config,
    write_certificate_kubeconfig,
    write_token_kubeconfig,
)
from tests.controlplane.certificates import Authority


def test_a_token_file_row_has_token_user_uid_and_groups(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.csv", {"ann": ["team-a", "team-b"]})

    (row,) = csv.reader((tmp_path / "tokens.csv").read_text().splitlines())
    assert row == [tokens.find("ann", ["team-a", "team-b"]), "ann", "uid-ann", "team-a,team-b"]
    assert (tmp_path / "tokens.csv").stat().st_mode & 0o777 == 0o600


def test_a_user_is_found_by_name_and_groups(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.csv", {"ann": []})

    assert tokens.find("ann", ["team-a"]) is None
    added = tokens.add("ann", ["team-a"])
    assert tokens.find("ann", ["team-a"]) == added
    assert tokens.find("ann", []) not in (None, added)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_anonymous_requests_are_let_in_for_health_alone(tmp_path: Path, path: str) -> None:
    document = yaml.safe_load(write_authentication_config(tmp_path / "authentication.yaml").read_text())

    assert {"path": path} in document["anonymous"]["conditions"]
    assert len(document["anonymous"]["conditions"]) == 3


def test_a_certificate_kubeconfig_carries_its_files_inside(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    pair = authority.client_pair("ann")

    path = write_certificate_kubeconfig(
        tmp_path / "kubeconfig", url="https://127.0.0.1:1", ca_file=authority.certificate_file, pair=pair
    )

    document = yaml.safe_load(path.read_text())
    user, cluster = document["users"][0]["user"], document["clusters"][0]["cluster"]
    assert base64.b64decode(user["client-key-data"]) == pair.key.read_bytes()
    assert base64.b64decode(cluster["certificate-authority-data"]) == authority.certificate_file.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_token_kubeconfig_names_the_token(tmp_path: Path) -> None:
    ca_file = Authority(tmp_path / "pki").certificate_file

    path = write_token_kubeconfig(tmp_path / "kubeconfig", url="https://127.0.0.1:1", ca_file=ca_file, token="abc")

    assert yaml.safe_load(path.read_text())["users"][0]["user"] == {"token": "abc"}
