"""How fast the parts are: `make bench` measures them and writes the reference page."""
