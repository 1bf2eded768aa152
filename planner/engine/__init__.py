"""The engines: each turns a scenario into the same trace."""
