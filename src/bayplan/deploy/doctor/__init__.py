"""Compares a configuration with a live cluster: each finding has a reason and the command that fixes it.

It only reads, and creates access reviews, which change nothing.
"""

from bayplan.deploy.doctor.examination import Examination, examine
from bayplan.deploy.doctor.finding import Finding, Level

__all__ = ["Examination", "Finding", "Level", "examine"]
