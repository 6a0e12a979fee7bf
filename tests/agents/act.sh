#!/bin/sh
# An agent that does what its prompt says: the prompt is a shell script, run in the workspace.
python3 -c 'import json, os; print(json.load(open(os.environ["SCORESHEET_TASK"]))["prompt"])' > "$HOME/act.sh"
. "$HOME/act.sh"
