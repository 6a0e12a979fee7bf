"""Programs that run inside the sandbox: stdlib only, started with `python -I -S`, never imported by the host's code paths."""
