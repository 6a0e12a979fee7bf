"""Programs that run inside the sandbox: stdlib only, started with `python -I -S`."""
