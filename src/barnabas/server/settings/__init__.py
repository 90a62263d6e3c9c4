"""The broker's settings: declared once, read from a properties file, changed in the running broker, shown.

broker_settings.py holds what the rest of the server reads. The files named after themes hold declarations and
nothing else; catalog.py joins them. endpoints.py understands listeners and voters. view.py says which value
holds and where it comes from; dynamic.py keeps it current; reference.py writes the page for users.
"""
