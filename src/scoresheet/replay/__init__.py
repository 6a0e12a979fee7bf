"""Answering an agent from the recording, and from nothing else. No code here can open an outbound connection."""
