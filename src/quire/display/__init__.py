"""Output for people and for other programs."""
