#!/bin/sh
# A coding agent that looks at its workspace and changes nothing.
ls
