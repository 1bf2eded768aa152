"""What a scenario file says: reading it, checking it, writing it, telling two apart."""
