"""The loop of openai-tools, which then looks for keys in all that its own process holds: `dumps.py LOOP MASKED…`.

Each text is given with every byte xored with 85, so that looking for it does not put it into memory. What is counted is
in the answer's last line.
"""

import json
import os
import re
import runpy
import sys

loop, *masked = sys.argv[1:]
last = os.environ["HOME"] + "/last.txt"
with open(os.environ["SCORESHEET_TASK"]) as file:
    prompt = json.load(file)["prompt"]
sys.argv = [loop, os.environ["SCORESHEET_MODEL"], prompt, last]
runpy.run_path(loop, run_name="__main__")

hidden = [bytes.fromhex(each) for each in masked]
mask = bytes(byte ^ 85 for byte in range(256))
counts = [0] * len(hidden)
with open("/proc/self/maps") as file:
    places = [re.match(r"(\w+)-(\w+) r\S+ \S+ \S+ (\d+)", line) for line in file]
with open("/proc/self/mem", "rb", 0) as memory:
    for place in filter(None, places):
        start, end = int(place[1], 16), int(place[2], 16)
        try:
            memory.seek(start)
            data = memory.read(end - start).translate(mask)  # masked as the texts are
        except (OSError, OverflowError):
            continue
        counts = [count + data.count(each) for count, each in zip(counts, hidden, strict=True)]
        del data
with open(last) as file:
    print(json.dumps({"held": counts}))
    print(file.read().splitlines()[-1])
