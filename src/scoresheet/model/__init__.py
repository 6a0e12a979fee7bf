"""The model's side of an episode: the door that its calls pass, what they said on the wire, and what that proves."""
