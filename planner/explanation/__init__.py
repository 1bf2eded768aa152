"""Why a job waits, and why one goes before another: facts first, then sentences."""
