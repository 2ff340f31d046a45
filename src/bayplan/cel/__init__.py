"""The Common Expression Language: parse, check and evaluate expressions as Kubernetes does, cost included.

`Environment` declares what expressions may use, `Environment.compile` makes a `Program` of a text. The functions are in
`bayplan.cel.library`; `bayplan.cel.devices` has the environment of device selectors.
"""

from __future__ import annotations

from bayplan.cel.environment import Environment, Evaluation, Program
from bayplan.cel.errors import CelError, CompileError, CostExceeded, EvaluationError

__all__ = ["CelError", "CompileError", "CostExceeded", "Environment", "Evaluation", "EvaluationError", "Program"]
