"""How things look to people and to other programs."""
