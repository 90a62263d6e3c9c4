"""Hand-tuned codecs of the hottest messages (compiled).

Their classes are written by hand so that mypyc compiles them to C structs. The declarations in messages/
still define fields and versions, the generated codecs work with these classes, too, and tests check that
both produce the same bytes.
"""
