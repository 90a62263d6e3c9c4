"""Foundations of all packages: ids, errors, settings, the list of compiled modules. Imports none of them."""
