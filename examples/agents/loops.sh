#!/bin/sh
# A coding agent that never ends, and leaves a process that would go on without it.
(while :; do sleep 1; done) &
while :; do sleep 1; done
