"""The maps that come with swarmbo: files NAME.map, loaded by name."""
