"""The world of a case: the scripts that stand in for models, tools and people, and the ports that play them."""
