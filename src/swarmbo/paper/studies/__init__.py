"""The studies that come with swarmbo: files NAME.toml, run by name."""
