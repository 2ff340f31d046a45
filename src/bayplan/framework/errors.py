"""What can be wrong with a plugin before it runs.

    PluginError            a plugin class that cannot be used; says what to write instead
    ├── PluginLoadError    its file or module does not load; says where
    └── UnknownPlugin      no plugin of that name; says which is meant

Outcomes of plugin calls are never exceptions; see `bayplan.framework.status`.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["PluginError", "PluginLoadError", "UnknownPlugin"]


class PluginError(Exception):
    """All problems of one plugin class at once, in `problems`."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(f"{subject}: {self.problems[0]}")
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{subject}: {len(self.problems)} problems{lines}")


class PluginLoadError(PluginError):
    """The file or module that holds a plugin does not load."""

    def __init__(self, subject: str, problem: str) -> None:
        super().__init__(subject, (problem,))


class UnknownPlugin(PluginError):
    """No plugin of that name was registered or installed."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"plugin `{name}`", (f"does not exist; {hint}" if hint else "does not exist",))
        self.name = name
        self.hint = hint
