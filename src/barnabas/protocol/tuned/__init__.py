"""Hand-tuned codecs of the hottest messages (compiled).

Their classes are written out by hand so that mypyc lays them out as C structs. The declarations in
messages/ still say what the fields and versions are, the generated codecs work on these classes too,
and tests hold both to the same bytes.
"""
