"""Evolution: how behaviour is described, MAP-Elites, and the maps that it makes."""
