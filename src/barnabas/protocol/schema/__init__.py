"""The notation in which messages are declared, and the compiler that generates their codecs.

Declarations use fields.py and struct.py; all other code calls codec.py. In between, layout.py resolves a
declaration for one version, decoder.py and encoder.py generate straight-line Python for it at first use, and
explain.py finds the error after a failure.
"""
