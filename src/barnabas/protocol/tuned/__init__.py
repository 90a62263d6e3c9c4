"""Tuned codecs of the most frequent messages, which the build generates from their declarations and compiles.

generate.py writes a module per family of messages: a class per struct, which mypyc compiles to a C struct,
and a codec per message for all versions. reader.py and writer.py are what the codecs consist of. Without
compiled kernels there are no such modules, and messages have the generic classes and codecs of schema/.
"""
