"""Agent scores that travel with their protocol sheet.

Start at the command line (`scoresheet --help`). As a library, import the module that has the name:
`scoresheet.pack.freeze`, `scoresheet.replay.session`, `scoresheet.stats.interval`. Nothing is re-exported here.
"""

__version__ = "0.1.0"
