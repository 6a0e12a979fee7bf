"""Runs a script in an environment that names no proxy: without_proxy.py SCRIPT."""

import os
import runpy
import sys

for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
    del os.environ[name]
runpy.run_path(sys.argv[1], run_name="__main__")
