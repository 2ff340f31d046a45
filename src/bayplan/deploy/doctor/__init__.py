"""DOCTOR: what is wrong between a configuration and a live cluster, why it matters, and the command that fixes it.

It only reads (and asks for access reviews, which change nothing).
"""

from bayplan.deploy.doctor.examination import Examination, examine
from bayplan.deploy.doctor.finding import Finding, Level

__all__ = ["Examination", "Finding", "Level", "examine"]
