"""Find out from the source of a plugin's one-node methods what its answers depend on; nothing is executed.

    reading_of(PreferZone, "score")     # Reading(depends=Depends.NODE, ...)

`reader` reads a method, `body` its statements and expressions, `attributes` says which attributes of the plugin keep
their values, `premises` watches that they do, and `source` finds the source that belongs to the code that runs.
"""

from bayplan.framework.reading.premises import Premises
from bayplan.framework.reading.reader import Reading, ReadPart, reading_of, stated_depends

__all__ = ["Premises", "ReadPart", "Reading", "reading_of", "stated_depends"]
