"""What the records of a run say: each module takes a trace and returns tidy frames.

Times are seconds from the scenario's start, amounts are GPU-seconds. Unknown is null, never 0.
"""
