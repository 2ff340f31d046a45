"""The Dockerfile for plugin projects: on the given image, from what is in the folder, and as an ordinary user."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan import __version__
from bayplan.app.settings import SettingsError
from bayplan.deploy.image import dockerfile


@pytest.fixture
def project(tmp_path: Path) -> Path:
    package = tmp_path / "fit" / "src" / "fit_in_image"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from bayplan.framework import Plugin\n")
    (tmp_path / "fit" / "pyproject.toml").write_text('[project]\nname = "fit"\n')
    return tmp_path / "fit"


def test_the_project_is_installed_beside_the_same_bayplan(project: Path) -> None:
    text = dockerfile([str(project)], base="bayplan@sha256:abc", context=project)
    steps = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]

    assert [step.split()[0] for step in steps] == ["FROM", "USER", "COPY", "RUN", "USER"]
    assert steps[0] == "FROM bayplan@sha256:abc"
    assert steps[2] == "COPY . /source/fit"
    assert f"bayplan=={__version__} /source/fit" in steps[3]
    assert steps[-1] == "USER 65532:65532"


def test_a_project_below_the_folder_is_copied_from_there(project: Path) -> None:
    assert "COPY fit /source/fit\n" in dockerfile([str(project / "src")], base="b", context=project.parent)


def test_what_cannot_be_copied_or_installed_is_refused(project: Path) -> None:
    with pytest.raises(SettingsError, match="is outside of"):
        dockerfile([str(project)], base="b", context=project / "src")
    with pytest.raises(SettingsError, match="a file needs no image of its own"):
        dockerfile(["fit.py"], base="b", context=project)
    with pytest.raises(SettingsError, match="name the folder of a plugin project"):
        dockerfile([], base="b", context=project)
    (project / "pyproject.toml").unlink()
    with pytest.raises(SettingsError, match=r"has no pyproject.toml; `bayplan new` writes one"):
        dockerfile([str(project)], base="b", context=project)
