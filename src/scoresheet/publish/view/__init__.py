"""Many runs behind one address of this machine: `runs` reads them, `site` answers, `server` listens."""
