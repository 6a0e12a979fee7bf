"""Running episodes: plan, one episode, the journal of rows, the local engine."""
