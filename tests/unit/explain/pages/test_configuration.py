"""The configuration page: every value with the place where somebody wrote it, also where merging moved it."""

from __future__ import annotations

from pathlib import Path

from bayplan.app.settings import load_settings
from bayplan.explain.pages.configuration import config_page

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 8
profiles:
  - schedulerName: mine
    plugins:
      multiPoint:
        enabled:
          - name: ImageLocality
            weight: 7
    pluginConfig:
      - name: InterPodAffinity
        args:
          hardPodAffinityWeight: 5
"""


def test_values_name_their_line_and_the_rest_are_defaults(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIG)
    page = config_page(load_settings(path, []))
    written = {value.path.split(".")[-1]: value for value in page.values if value.source != "default"}

    assert written["parallelism"].source == f"{path}:3"
    assert (written["hardPodAffinityWeight"].value, written["hardPodAffinityWeight"].source) == (5, f"{path}:14")
    assert (written["weight"].value, written["weight"].source) == (7, f"{path}:10")
    assert any(value.source == "default" for value in page.values if "pluginConfig" in value.path)
