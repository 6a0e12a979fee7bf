"""Running an agent where it provably reaches nothing but the sockets that the host listens on."""
