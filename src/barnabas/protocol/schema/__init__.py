"""The notation messages are declared in, and the compiler that makes codecs of it.

fields.py and struct.py are what a declaration uses; codec.py is what everybody else calls.
In between: layout.py resolves a declaration for one version, decoder.py and encoder.py write
straight-line Python for it at first use, explain.py finds out what was wrong when that fails.
"""
