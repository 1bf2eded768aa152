"""The compiled engine's inside: the rules of section 4 over NumPy records, compiled by Numba.

`layout` names the records, `build` fills them from a scenario; the other files are the rules, from
the smallest (`nodes`, `quota`) to the whole run (`run`). None of them knows a name or a Fraction.
"""
